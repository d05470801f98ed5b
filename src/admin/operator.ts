import { randomUUID } from "node:crypto";
import type * as z from "zod";
import { usualAccount } from "../auth/account.ts";
import type { Scope } from "../auth/caller.ts";
import type { Call } from "../core/core.ts";

/** The operator who sent a request to the admin listener, and what they may see there. */
export interface Operator {
  /** Safe to log. */
  readonly name: string;
  /** Merchant accounts that the operator may see, at least one. */
  readonly accounts: readonly string[];
}

/** A response. A string body is sent unchanged, any other body as JSON. */
export interface AdminAnswer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An operator's request for one of the routes. */
export interface AdminRequest {
  readonly operator: Operator;
  /** What stands in the path for the route's variables. */
  readonly variables: readonly string[];
  readonly query: URLSearchParams;
  /** Reads its JSON. @throws Refused */
  body(): Promise<unknown>;
}

/**
 * What operators can ask for, each by its method and path, such as
 * `GET /dead-letters/{account}/{id}`. @throws Refused, GatewayError
 */
export type Routes = Readonly<
  Record<string, (asked: AdminRequest) => AdminAnswer | Promise<AdminAnswer>>
>;

/** A route that answers with JSON. */
export function json(of: (asked: AdminRequest) => unknown): Routes[string] {
  return async (asked) => ({ status: 200, body: await of(asked) });
}

/** A refusal with its HTTP status; its message is shown to the operator. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;
  readonly reason: string | undefined;

  constructor(status: number, message: string, reason?: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

/**
 * The requested account; if the request names none, `default`, or the operator's only account. An
 * unknown account and one that the operator may not see are refused with the same error.
 * @throws Refused
 */
export function accountOf({ accounts }: Operator, asked: string | null): string {
  const usual = usualAccount(new Set(accounts));
  if (asked === null && usual !== undefined) return usual;
  const reason = "MERCHANT_ACCOUNT_REFUSED";
  if (asked === null) throw new Refused(400, "account: name one of your accounts", reason);
  if (accounts.includes(asked)) return asked;
  throw new Refused(403, "the account is unknown or not yours", reason);
}

/** What was sent, if it has this shape. @param what it is, for a message about all of it */
export function read<T>(schema: z.ZodType<T>, sent: unknown, what = "body"): T {
  const result = schema.safeParse(sent);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Refused(400, `${issue?.path.join(".") || what}: ${issue?.message ?? "is wrong"}`);
}

/** The same of a query. */
export function readQuery<T>(schema: z.ZodType<T>, query: URLSearchParams): T {
  return read(schema, Object.fromEntries(query), "the query");
}

const callTimeoutMs = 60_000;

/** A call in an operator's name, with these scopes. */
export function callAs(name: string, account: string, scopes: readonly Scope[]): Call {
  const caller = { name, account, scopes: new Set(scopes) };
  return { caller, signal: AbortSignal.timeout(callTimeoutMs), requestId: randomUUID() };
}

import type { IncomingMessage } from "node:http";
import type { Caller, Scope } from "../auth/caller.ts";
import { type Credentials, type Identify, inAccount } from "../auth/identify.ts";
import { GatewayError } from "../errors.ts";
import type { Operator } from "./operator.ts";

/** Scopes of the console's GraphQL: it moves no money and reads no wallet, whoever uses it. */
const readScopes: ReadonlySet<Scope> = new Set<Scope>([
  "events:read",
  "payments:read",
  "payouts:read",
  "operations:read",
]);

/** Operators are callers with the scope `admin`; with AUTH_MODE=none every caller is one. */
export function createOperatorIdentity(identify: Identify, accounts: readonly string[]) {
  async function adminOf(credentials: Credentials): Promise<Caller> {
    const caller = await identify(credentials);
    if (caller.scopes.has("admin") && caller.watch === undefined) return caller;
    throw new GatewayError("PERMISSION_DENIED", "needs the scope admin", {
      reason: "SCOPE_MISSING",
    });
  }

  return {
    /** @throws GatewayError UNAUTHENTICATED, PERMISSION_DENIED without the scope `admin` */
    async operatorOf({ headers }: IncomingMessage): Promise<Operator> {
      const seen: Caller[] = [];
      let refusal: unknown;
      const credentials = { header: (name: string) => headers[name]?.toString() };
      for (const account of accounts) {
        try {
          seen.push(await adminOf(inAccount(credentials, account)));
        } catch (error) {
          if (!isOfAccount(error)) throw error;
          refusal = error;
        }
      }
      const [caller] = seen;
      if (!caller) throw refusal;
      return { name: caller.name, accounts: seen.map(({ account }) => account) };
    },
    /** The same for GraphQL: an operator as a caller who may only read. */
    async identify({ header }: Credentials): Promise<Caller> {
      const { customerToken: _, ...caller } = await adminOf({ header });
      return { ...caller, scopes: readScopes };
    },
  };
}

/** Whether the caller is known, and only may not use this merchant account. */
function isOfAccount(error: unknown): boolean {
  return error instanceof GatewayError && error.details.reason === "MERCHANT_ACCOUNT_REFUSED";
}

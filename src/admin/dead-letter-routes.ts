import * as z from "zod";
import type { DeadLetters } from "./dead-letters.ts";
import { accountOf, type Operator, readQuery } from "./operator.ts";

/** A response. A string body is sent unchanged, any other body as JSON. */
export interface AdminAnswer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An operator's request. */
export interface AdminRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Reads its JSON. @throws Refused */
  body(): Promise<unknown>;
}

/**
 * Serves the dead letters of the accounts that the operator may see: `GET /dead-letters`,
 * `GET` and `DELETE /dead-letters/{account}/{id}`, `POST /dead-letters/{account}/{id}/replay`;
 * undefined for any other path. @throws Refused
 */
export async function answerDeadLetters(
  letters: DeadLetters,
  operator: Operator,
  { method, path, query }: AdminRequest,
): Promise<AdminAnswer | undefined> {
  const [, first, account, id, action, ...rest] = path.split("/").map(decodeURIComponent);
  if (first !== "dead-letters" || rest.length > 0) return undefined;
  if (account === undefined) {
    if (method !== "GET") return notAllowed("GET, HEAD");
    const { account, order, ...listed } = readQuery(listQuery, query);
    const of = accountOf(operator, account ?? null);
    const newestFirst = order === "newest";
    return { status: 200, body: await letters.list({ account: of, newestFirst, ...listed }) };
  }
  if (!id || !operator.accounts.includes(account)) return notFound;

  if (action === undefined) {
    if (method === "DELETE") {
      const wasThere = await letters.discard(account, id, operator.name);
      return wasThere ? { status: 204 } : notFound;
    }
    if (method !== "GET") return notAllowed("GET, HEAD, DELETE");
    const rawFor = query.get("raw") === "false" ? undefined : operator.name;
    const letter = await letters.find(account, id, rawFor);
    return letter ? { status: 200, body: letter } : notFound;
  }
  if (action !== "replay") return undefined;
  if (method !== "POST") return notAllowed("POST");
  const outcome = await letters.replay(account, id, operator.name);
  if (outcome === "not_found") return notFound;
  const stays = outcome === "not_understood" || outcome === "locked";
  return { status: stays ? 422 : 200, body: { outcome } };
}

const maxListed = 1_000;

const listQuery = z.strictObject({
  account: z.string().optional(),
  limit: z
    .string()
    .regex(/^\d{1,9}$/, "is not a whole number")
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= maxListed, `accepted is 1 to ${maxListed}`)
    .default(100),
  order: z.enum(["newest", "oldest"], "accepted is newest or oldest").default("newest"),
  cursor: z.string().optional(),
});

export function notAllowed(allow: string): AdminAnswer {
  return { status: 405, body: { error: "method not allowed" }, headers: { allow } };
}

export const notFound: AdminAnswer = { status: 404, body: { error: "not found" } };

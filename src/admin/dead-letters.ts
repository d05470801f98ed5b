import { isUtf8 } from "node:buffer";
import * as z from "zod";
import { type Replayed, replay } from "../callbacks/replay.ts";
import type { StoredDeadLetter } from "../ledger/dead-letters.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { kinds } from "../model/kinds.ts";
import type { PayoutEnds } from "../model/payout-statuses.ts";
import type { Report } from "../report.ts";
import { redact } from "../secrets/redact.ts";
import type { DeadLetterDetails, DeadLetterPage, DeadLetterView } from "./dead-letter.ts";
import {
  type AdminAnswer,
  type AdminRequest,
  accountOf,
  notAllowed,
  notFound,
  type Operator,
  readQuery,
} from "./operator.ts";

export type DeadLetters = ReturnType<typeof createDeadLetters>;

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
  /** `next_cursor` of the page before. */
  cursor: z.string().optional(),
});

/** What an operator can do about callbacks that were not understood, of all accounts. */
export function createDeadLetters(ledger: Ledger, report: Report, payoutEnds?: PayoutEnds) {
  return {
    /** @throws GatewayError INVALID_ARGUMENT for text that is not a cursor */
    async list(
      account: string,
      { limit, order, cursor: behind }: Omit<z.output<typeof listQuery>, "account">,
    ): Promise<DeadLetterPage> {
      const newestFirst = order === "newest";
      const total = await ledger.letters.countDeadLetters(account);
      const found: StoredDeadLetter[] = [];
      for await (const letter of ledger.letters.deadLetters(account, { newestFirst, behind })) {
        if (found.push(letter) > limit) break;
      }
      const page = found.slice(0, limit);
      return {
        dead_letters: page.map((letter) => viewOf(account, letter)),
        total,
        next_cursor: found.length > limit ? page.at(-1)?.place : undefined,
      };
    },
    /** @param rawFor the operator who gets the body as it was received, which may hold card data */
    async find(
      account: string,
      id: string,
      rawFor: string | undefined,
    ): Promise<DeadLetterDetails | undefined> {
      const letter = await ledger.letters.deadLetter(account, id);
      if (!letter) return undefined;
      const view = viewOf(account, letter);
      const body = rawFor === undefined ? undefined : letter.body;
      if (rawFor !== undefined && body !== undefined) {
        report("letterHandled", { operator: rawFor, did: "read as it came", letter: view });
      }
      return { ...view, text: textOf(letter), body };
    },
    /** Parses a letter again. If it is understood now, it becomes an event and leaves the list. */
    async replay(account: string, id: string, operator: string): Promise<Replayed> {
      const outcome = await replay(ledger, account, id, payoutEnds);
      if (outcome === "stored" || outcome === "duplicate") {
        report("letterHandled", { operator, did: "replayed", letter: { account, id, outcome } });
      }
      return outcome;
    },
    /** Deletes a letter for good. @returns whether it existed */
    async discard(account: string, id: string, operator: string): Promise<boolean> {
      const letter = await ledger.letters.deadLetter(account, id);
      if (!letter || !(await ledger.letters.removeDeadLetter(account, id))) return false;
      report("letterHandled", {
        operator,
        did: "discarded",
        letter: viewOf(account, letter),
      });
      return true;
    },
  };
}

function viewOf(account: string, letter: StoredDeadLetter): DeadLetterView {
  const { id, kind, reason, body, receivedAtMs } = letter;
  return {
    account,
    id,
    resource: kinds[kind].resource,
    reason,
    receivedAt: new Date(receivedAtMs).toISOString(),
    ...(body === undefined ? { locked: true } : { bytes: Buffer.byteLength(body, "base64") }),
  };
}

/** Masked as plain text: the body was not understood, so its secret fields are not known. */
function textOf({ body }: StoredDeadLetter): string | undefined {
  if (body === undefined) return undefined;
  const bytes = Buffer.from(body, "base64");
  return isUtf8(bytes) ? redact(bytes.toString()) : undefined;
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
    const { account, ...listed } = readQuery(listQuery, query);
    const of = accountOf(operator, account ?? null);
    return { status: 200, body: await letters.list(of, listed) };
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

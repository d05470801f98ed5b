import { isUtf8 } from "node:buffer";
import { type Replayed, replay } from "../callbacks/replay.ts";
import type { StoredDeadLetter } from "../ledger/dead-letter.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { kinds } from "../model/kinds.ts";
import type { PayoutEnds } from "../model/payout-statuses.ts";
import type { Report } from "../report.ts";
import { redact } from "../secrets/redact.ts";
import type { DeadLetterDetails, DeadLetterPage, DeadLetterView } from "./dead-letter.ts";

export type DeadLetters = ReturnType<typeof createDeadLetters>;

/** Which letters are listed. */
export interface DeadLetterQuery {
  readonly account: string;
  readonly limit: number;
  readonly newestFirst: boolean;
  /** `next_cursor` of the page before. */
  readonly cursor?: string | undefined;
}

/** What an operator can do about callbacks that were not understood, of all accounts. */
export function createDeadLetters(ledger: Ledger, report: Report, payoutEnds?: PayoutEnds) {
  return {
    /** @throws GatewayError INVALID_ARGUMENT for text that is not a cursor */
    async list(query: DeadLetterQuery): Promise<DeadLetterPage> {
      const { account, limit, newestFirst, cursor: behind } = query;
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

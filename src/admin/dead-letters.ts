import { isUtf8 } from "node:buffer";
import * as z from "zod";
import { type Replayed, replay } from "../callbacks/replay.ts";
import { GatewayError } from "../errors.ts";
import type { StoredDeadLetter } from "../ledger/dead-letter.ts";
import type { EventLog } from "../ledger/log.ts";
import { kinds } from "../model/kinds.ts";
import type { PayoutEnds } from "../model/payout-statuses.ts";
import type { Report } from "../report.ts";
import { redact } from "../secrets/redact.ts";
import type { DeadLetterDetails, DeadLetterPage, DeadLetterView } from "./dead-letter.ts";

export type DeadLetters = ReturnType<typeof createDeadLetters>;

/** Which letters are listed. */
export interface DeadLetterQuery {
  readonly accounts: readonly string[];
  readonly limit: number;
  readonly order: Order;
  /** `next_cursor` of the page before. */
  readonly cursor?: string | undefined;
}

/** What an operator can do about callbacks that were not understood, of all accounts. */
export function createDeadLetters(
  accounts: readonly string[],
  log: EventLog,
  report: Report,
  payoutEnds?: PayoutEnds,
) {
  return {
    /** @throws GatewayError INVALID_ARGUMENT for text that is not a cursor of this order */
    async list(query: DeadLetterQuery): Promise<DeadLetterPage> {
      const { accounts: asked, limit, order, cursor } = query;
      const newestFirst = order === "newest";
      const places = placesOf(cursor, order);
      const lists = asked.map((account): List => {
        const letters = log.letters.deadLetters(account, {
          newestFirst,
          behind: places.get(account),
        });
        return { account, letters: letters[Symbol.asyncIterator](), head: undefined };
      });
      const counts = await Promise.all(
        asked.map((account) => log.letters.countDeadLetters(account)),
      );
      await Promise.all(lists.map(advance));
      const page: DeadLetterView[] = [];
      for (let next = first(lists, newestFirst); next; next = first(lists, newestFirst)) {
        if (page.length === limit) break;
        const { account, head } = next;
        page.push(viewOf(account, head));
        places.set(account, head.place);
        await advance(next);
      }
      const more = first(lists, newestFirst) !== undefined;
      await Promise.all(lists.map(({ letters }) => letters.return?.()));
      return {
        dead_letters: page,
        total: counts.reduce((total, count) => total + count, 0),
        ...(more && { next_cursor: writeCursor(places, order) }),
      };
    },
    async find(account: string, id: string): Promise<DeadLetterDetails | undefined> {
      const letter = await log.letters.deadLetter(account, id);
      return letter && { ...viewOf(account, letter), ...bodyOf(letter) };
    },
    /** Parses a letter again. If it is understood now, it becomes an event and leaves the list. */
    async replay(account: string, id: string): Promise<Replayed> {
      return accounts.includes(account) ? replay(log, account, id, payoutEnds) : "not_found";
    },
    /** Deletes a letter for good. @returns whether it existed */
    async discard(account: string, id: string, operator: string): Promise<boolean> {
      const letter = await log.letters.deadLetter(account, id);
      if (!letter || !(await log.letters.removeDeadLetter(account, id))) return false;
      report("letterDiscarded", { operator, letter: viewOf(account, letter) });
      return true;
    },
  };
}

/** The letters of one account; `head` is the first that is not on a page yet. */
interface List {
  readonly account: string;
  readonly letters: AsyncIterator<StoredDeadLetter>;
  head: StoredDeadLetter | undefined;
}

async function advance(list: List): Promise<void> {
  const { value, done } = await list.letters.next();
  list.head = done ? undefined : value;
}

/** The list whose head comes before the heads of all others. */
function first(lists: readonly List[], newestFirst: boolean) {
  let found: (List & { head: StoredDeadLetter }) | undefined;
  for (const list of lists) {
    if (!hasHead(list)) continue;
    const sinceMs = found ? list.head.receivedAtMs - found.head.receivedAtMs : 0;
    if (!found || (newestFirst ? sinceMs > 0 : sinceMs < 0)) found = list;
  }
  return found;
}

function hasHead(list: List): list is List & { head: StoredDeadLetter } {
  return list.head !== undefined;
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
function bodyOf({ body }: StoredDeadLetter): Pick<DeadLetterDetails, "body" | "text"> {
  if (body === undefined) return {};
  const bytes = Buffer.from(body, "base64");
  return isUtf8(bytes) ? { body, text: redact(bytes.toString()) } : { body };
}

type Order = "newest" | "oldest";

/** The cursor of the next page of dead letters: each account's place of its last listed letter. */
function writeCursor(places: ReadonlyMap<string, string>, order: Order): string {
  return Buffer.from(JSON.stringify([order, ...places])).toString("base64url");
}

/**
 * The places that a cursor holds, by account; none without a cursor.
 * @throws GatewayError INVALID_ARGUMENT for text that is not a cursor of this order
 */
function placesOf(cursor: string | undefined, order: Order): Map<string, string> {
  if (cursor === undefined) return new Map();
  try {
    const [ofOrder, ...places] = shape.parse(
      JSON.parse(Buffer.from(cursor, "base64url").toString()),
    );
    if (ofOrder === order) return new Map(places);
  } catch {
    // An unreadable cursor gets the same error as one of the other order.
  }
  const message = "cursor: it is not the next_cursor of a list in this order";
  throw new GatewayError("INVALID_ARGUMENT", message);
}

const shape = z.tuple([z.enum(["newest", "oldest"])], z.tuple([z.string(), z.string()]));

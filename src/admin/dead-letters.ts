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
export function createDeadLetters(log: EventLog, report: Report, payoutEnds?: PayoutEnds) {
  return {
    /** @throws GatewayError INVALID_ARGUMENT for text that is not a cursor of this order */
    async list(query: DeadLetterQuery): Promise<DeadLetterPage> {
      const { accounts: asked, limit, order, cursor } = query;
      const newestFirst = order === "newest";
      const places = placesOf(cursor, order);
      const lists = asked.map((account): List => {
        const behind = places.get(account);
        const letters = log.letters.deadLetters(account, { newestFirst, behind });
        return { account, letters: letters[Symbol.asyncIterator](), head: undefined };
      });
      const counts = await Promise.all(
        asked.map((account) => log.letters.countDeadLetters(account)),
      );
      const page: DeadLetterView[] = [];
      let more = false;
      for await (const { account, letter } of merged(lists, newestFirst)) {
        more = page.length === limit;
        if (more) break;
        page.push(viewOf(account, letter));
        places.set(account, letter.place);
      }
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
    replay: (account: string, id: string): Promise<Replayed> =>
      replay(log, account, id, payoutEnds),
    /** Deletes a letter for good. @returns whether it existed */
    async discard(account: string, id: string, operator: string): Promise<boolean> {
      const letter = await log.letters.deadLetter(account, id);
      if (!letter || !(await log.letters.removeDeadLetter(account, id))) return false;
      report("letterDiscarded", { operator, letter: viewOf(account, letter) });
      return true;
    },
  };
}

/** The letters of one account; `head` is the next one. */
interface List {
  readonly account: string;
  readonly letters: AsyncIterator<StoredDeadLetter>;
  head: StoredDeadLetter | undefined;
}

/** The letters of all lists in the order of their arrival. */
async function* merged(lists: readonly List[], newestFirst: boolean) {
  const advance = async (list: List) => {
    const { value, done } = await list.letters.next();
    list.head = done ? undefined : value;
  };
  const isBefore = (one: StoredDeadLetter, other: StoredDeadLetter) =>
    newestFirst ? one.receivedAtMs > other.receivedAtMs : one.receivedAtMs < other.receivedAtMs;
  try {
    await Promise.all(lists.map(advance));
    for (;;) {
      let next: List | undefined;
      for (const list of lists) {
        if (list.head && (!next?.head || isBefore(list.head, next.head))) next = list;
      }
      if (!next?.head) return;
      yield { account: next.account, letter: next.head };
      await advance(next);
    }
  } finally {
    await Promise.all(lists.map(({ letters }) => letters.return?.()));
  }
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

import { type Replayed, replay } from "../callbacks/replay.ts";
import type { PayoutEnds } from "../events/entry.ts";
import type { EventLog, KeptLetter } from "../events/log.ts";
import { kinds } from "../kinds.ts";
import { letterCursor, placesOf } from "./dead-letter-cursor.ts";
import type { DeadLetters, DeadLetterView } from "./dead-letter-routes.ts";

/** What operators do, for the log. */
export interface LettersObserver {
  /** A letter is gone for good, with nothing of it in the event log. */
  onDiscarded(done: { readonly operator: string; readonly letter: DeadLetterView }): void;
}

/** The dead letters of all accounts. */
export function deadLettersOf(
  accounts: readonly string[],
  log: EventLog,
  observer: LettersObserver,
  payoutEnds?: PayoutEnds,
): DeadLetters {
  return {
    async list({ accounts: asked, limit, order, cursor }) {
      const newestFirst = order === "newest";
      const places = placesOf(cursor, order);
      const lists = asked.map((account): List => {
        const letters = log.deadLetters(account, { newestFirst, behind: places.get(account) });
        return { account, letters: letters[Symbol.asyncIterator](), head: undefined };
      });
      const counts = await Promise.all(asked.map((account) => log.countDeadLetters(account)));
      await Promise.all(lists.map(advance));
      const page: DeadLetterView[] = [];
      for (let next = first(lists, newestFirst); next; next = first(lists, newestFirst)) {
        if (page.length === limit) break;
        const { account, head } = next;
        const { body, ...letter } = view(account, head);
        page.push(letter);
        places.set(account, head.place);
        await advance(next);
      }
      const more = first(lists, newestFirst) !== undefined;
      await Promise.all(lists.map(({ letters }) => letters.return?.()));
      return {
        letters: page,
        total: counts.reduce((total, count) => total + count, 0),
        ...(more && { nextCursor: letterCursor(places, order) }),
      };
    },
    async find(account, id) {
      const letter = await log.deadLetter(account, id);
      return letter && view(account, letter);
    },
    async replay(account, id): Promise<Replayed> {
      return accounts.includes(account) ? replay(log, account, id, payoutEnds) : "not_found";
    },
    async discard(account, id, operator) {
      const letter = await log.deadLetter(account, id);
      if (!letter || !(await log.removeDeadLetter(account, id))) return false;
      const { body, ...about } = view(account, letter);
      observer.onDiscarded({ operator, letter: about });
      return true;
    },
  };
}

/** The letters of one account, and the first of those that were not taken yet. */
interface List {
  readonly account: string;
  readonly letters: AsyncIterator<KeptLetter>;
  head: KeptLetter | undefined;
}

async function advance(list: List): Promise<void> {
  const { value, done } = await list.letters.next();
  list.head = done ? undefined : value;
}

/** The list whose first letter comes before those of all others. */
function first(lists: readonly List[], newestFirst: boolean) {
  let found: (List & { head: KeptLetter }) | undefined;
  for (const list of lists) {
    if (!hasHead(list)) continue;
    const sinceMs = found ? list.head.receivedAtMs - found.head.receivedAtMs : 0;
    if (!found || (newestFirst ? sinceMs > 0 : sinceMs < 0)) found = list;
  }
  return found;
}

function hasHead(list: List): list is List & { head: KeptLetter } {
  return list.head !== undefined;
}

function view(account: string, letter: KeptLetter): DeadLetterView {
  const { id, kind, reason, body, receivedAtMs } = letter;
  return {
    account,
    id,
    resource: kinds[kind].resource,
    reason,
    receivedAt: new Date(receivedAtMs).toISOString(),
    ...(body === undefined ? { locked: true as const } : { body }),
  };
}

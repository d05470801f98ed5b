import type { DeadLetterPage, DeadLetterView } from "../admin/dead-letter.ts";
import type { AdminOptions, AskAdmin } from "./admin-client.ts";
import { CommandError, wrongUsage } from "./command-error.ts";

export interface ListOptions extends AdminOptions {
  readonly account?: string;
  /** No more than so many are needed. */
  readonly limit?: number;
}

/** A part of the list. */
export interface Page {
  readonly letters: readonly DeadLetterView[];
  /** On all pages together, when the list began. */
  readonly total: number;
}

/** The list, a page at a time. What leaves it meanwhile shifts nothing. */
export async function* pagesOf(
  { account, adminUrl, limit }: ListOptions,
  ask: AskAdmin,
  order: "newest" | "oldest",
): AsyncGenerator<Page> {
  const query = new URLSearchParams({ order, limit: `${Math.min(limit ?? pageSize, pageSize)}` });
  if (account !== undefined) query.set("account", account);
  for (;;) {
    const { status, body } = await ask("GET", `/dead-letters?${query}`);
    const {
      dead_letters: letters,
      total = 0,
      next_cursor: next,
    } = (body ?? {}) as Partial<DeadLetterPage>;
    if (status !== 200 || !Array.isArray(letters)) {
      throw new CommandError(`${adminUrl} answers, but not as a gateway's admin listener does`);
    }
    yield { letters, total };
    if (next === undefined) return;
    query.set("cursor", next);
  }
}

const pageSize = 100;

/** The one letter of an id, which may be cut short. @throws CommandError */
export async function letterOf(
  id: string,
  options: ListOptions,
  ask: AskAdmin,
): Promise<DeadLetterView> {
  const [letter] = await lettersOf([id], options, ask);
  if (!letter) throw new Error("no letter was found, and nothing said so");
  return letter;
}

/** The one letter of each id. @throws CommandError for an id that is none's, or more than one's */
export async function lettersOf(
  ids: readonly string[],
  options: ListOptions,
  ask: AskAdmin,
): Promise<DeadLetterView[]> {
  const found = new Map(ids.map((id): [string, DeadLetterView[]] => [id, []]));
  for await (const { letters } of pagesOf(options, ask, "newest")) {
    for (const letter of letters) {
      for (const [id, ofId] of found) if (id !== "" && letter.id.startsWith(id)) ofId.push(letter);
    }
  }
  return [...new Set([...found].map(([id, ofId]) => onlyOf(id, ofId)))];
}

function onlyOf(id: string, found: readonly DeadLetterView[]): DeadLetterView {
  const [letter, second] = found;
  if (!letter) throw new CommandError(`no dead letter ${JSON.stringify(id)}`);
  if (second) {
    const which = found.some((other) => other.id !== letter.id)
      ? "give more of it"
      : "give --account";
    throw wrongUsage(`${found.length} dead letters begin with ${JSON.stringify(id)}: ${which}`);
  }
  return letter;
}

export function pathOf({ account, id }: DeadLetterView): string {
  return `/dead-letters/${encodeURIComponent(account)}/${encodeURIComponent(id)}`;
}

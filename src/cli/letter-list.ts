import type { DeadLetterPage, DeadLetterView } from "../admin/dead-letter.ts";
import { type AdminOptions, type AskAdmin, notAnAdminListener } from "./admin-client.ts";
import { CommandError, wrongUsage } from "./command-error.ts";

export interface ListOptions extends AdminOptions {
  readonly account?: string;
  /** How many letters the caller needs at most. */
  readonly limit?: number;
}

/** Yields the list page by page. Letters removed meanwhile do not shift the later pages. */
export async function* pagesOf(
  { account, adminUrl, limit }: ListOptions,
  ask: AskAdmin,
  order: "newest" | "oldest",
): AsyncGenerator<DeadLetterPage> {
  const query = new URLSearchParams({ order, limit: `${Math.min(limit ?? pageSize, pageSize)}` });
  if (account !== undefined) query.set("account", account);
  for (;;) {
    const { status, body } = await ask("GET", `/dead-letters?${query}`);
    const page = (body ?? {}) as DeadLetterPage;
    if (status !== 200 || !Array.isArray(page.dead_letters)) throw notAnAdminListener(adminUrl);
    yield page;
    if (page.next_cursor === undefined) return;
    query.set("cursor", page.next_cursor);
  }
}

const pageSize = 100;

/** The letter of each id or id prefix. @throws CommandError unless each matches exactly one */
export async function lettersOf(
  ids: readonly string[],
  options: ListOptions,
  ask: AskAdmin,
): Promise<DeadLetterView[]> {
  const found = new Map(ids.map((id): [string, DeadLetterView[]] => [id, []]));
  for await (const page of pagesOf(options, ask, "newest")) {
    for (const letter of page.dead_letters) {
      for (const [id, ofId] of found) if (id !== "" && letter.id.startsWith(id)) ofId.push(letter);
    }
  }
  return [...new Set([...found].map(([id, ofId]) => onlyOf(id, ofId)))];
}

function onlyOf(id: string, found: readonly DeadLetterView[]): DeadLetterView {
  const [letter, second] = found;
  if (!letter) throw new CommandError(`no dead letter ${JSON.stringify(id)}`);
  if (second) {
    throw wrongUsage(
      `${found.length} dead letters begin with ${JSON.stringify(id)}: give more of it`,
    );
  }
  return letter;
}

export function pathOf({ account, id }: DeadLetterView): string {
  return `/dead-letters/${encodeURIComponent(account)}/${encodeURIComponent(id)}`;
}

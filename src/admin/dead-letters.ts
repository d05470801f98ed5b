import { requireJson } from "./json-body.ts";
import type { Operator } from "./operator.ts";

/** A callback that was not understood, as an operator sees it. */
export interface DeadLetterView {
  readonly account: string;
  readonly id: string;
  readonly resource: "payments" | "payouts";
  readonly reason: string;
  /** RFC 3339. */
  readonly receivedAt: string;
  /** The raw body, in base64. In the view of a single letter only, and not of one that is locked. */
  readonly body?: string;
  /** The body was sealed with a password that is no longer accepted. */
  readonly locked?: true;
}

/** What an operator can do about callbacks that were not understood (contract, section 7). */
export interface DeadLetters {
  /** Newest first, of all accounts. */
  list(): Promise<DeadLetterView[]>;
  /** Tries a letter again; understood now, it becomes an event and leaves the list. */
  replay(account: string, id: string): Promise<string>;
}

/** Text is sent as it is, anything else as JSON. */
export interface AdminAnswer {
  readonly status: number;
  readonly body: unknown;
}

/**
 * Of the accounts that the operator may see:
 * `GET /dead-letters`, `GET /dead-letters/{account}/{id}`,
 * `POST /dead-letters/{account}/{id}/replay`; undefined for any other path.
 */
export async function answerDeadLetters(
  letters: DeadLetters,
  { accounts }: Operator,
  method: string,
  path: string,
  contentType: string | undefined,
): Promise<AdminAnswer | undefined> {
  const [, room, account, id, action, ...rest] = path.split("/").map(decodeURIComponent);
  if (room !== "dead-letters" || rest.length > 0) return undefined;
  const isSeen = (name: string) => accounts.includes(name);

  if (method === "GET" && account === undefined) {
    const all = (await letters.list()).filter((letter) => isSeen(letter.account));
    return { status: 200, body: { dead_letters: all.map(({ body: _, ...view }) => view) } };
  }
  if (account !== undefined && !isSeen(account)) return notFound;
  if (method === "GET" && id !== undefined && action === undefined) {
    const letter = (await letters.list()).find((l) => l.account === account && l.id === id);
    return letter ? { status: 200, body: letter } : notFound;
  }
  if (method === "POST" && account && id && action === "replay") {
    // A page elsewhere can make a browser post a form, but not JSON.
    requireJson(contentType);
    const outcome = await letters.replay(account, id);
    if (outcome === "not_found") return notFound;
    const stays = outcome === "not_understood" || outcome === "locked";
    return { status: stays ? 422 : 200, body: { outcome } };
  }
  return undefined;
}

const notFound: AdminAnswer = { status: 404, body: { error: "not found" } };

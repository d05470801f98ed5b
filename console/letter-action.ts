import type { DeadLetterView } from "../src/admin/console-api.ts";
import { ApiError, type Client, messageOf } from "./client.ts";
import { plural } from "./format.ts";

/** What an operator can do with a dead letter. */
export type LetterAction = "replay" | "discard";

/** The result of an action on one letter. */
export interface Done {
  /** Text to show with the letter, while it is listed. */
  readonly text: string;
  readonly isUnderstood?: boolean;
}

export function pathOf(account: string, id: string): string {
  return `/dead-letters/${encodeURIComponent(account)}/${encodeURIComponent(id)}`;
}

/** Runs the action on one letter. Never throws: a failure is returned as text. */
export async function act(
  action: LetterAction,
  client: Client,
  account: string,
  { id }: DeadLetterView,
): Promise<Done> {
  const path = pathOf(account, id);
  try {
    if (action === "discard") {
      await client.delete(path);
      return { text: "It was discarded." };
    }
    const { outcome } = await client.post<{ outcome: string }>(`${path}/replay`, {});
    return { text: understood[outcome] ?? outcome, isUnderstood: true };
  } catch (error) {
    if (error instanceof ApiError && error.status === 422) {
      return { text: staying[error.message] ?? stillNot };
    }
    if (error instanceof ApiError && error.status === 404) {
      return { text: "It is gone: somebody replayed or discarded it." };
    }
    return { text: `It could not be ${pastOf[action]}: ${messageOf(error)}.` };
  }
}

/** The results of all letters as one text. */
export function summaryOf(action: LetterAction, done: readonly Done[]): string {
  const [only] = done;
  if (done.length === 1 && only) return only.text;
  const ofThem = done.filter(({ isUnderstood }) => isUnderstood).length;
  return `${plural(done.length, "callback")} ${pastOf[action]}, ${ofThem} understood now.`;
}

const pastOf = { replay: "replayed", discard: "discarded" } as const;

const understood: Readonly<Record<string, string>> = {
  stored: "Understood now: it became an event.",
  duplicate: "Understood now: its event was known already.",
};

const staying: Readonly<Record<string, string>> = {
  locked: "It was sealed with a password that is no longer accepted: it stays here.",
};

const stillNot = "Still not understood: it stays here.";

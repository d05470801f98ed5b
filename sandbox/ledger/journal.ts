import { redact } from "../../src/secrets/redact.ts";
import type { SandboxClock } from "../clock.ts";

/** A request that the emulator received, or one attempt to deliver a callback. */
export type JournalEntry = {
  readonly externalId: string | undefined;
  readonly body: string;
  /** The response's status; `lost` if the connection was broken instead, or an error code. */
  readonly outcome: string;
} & (
  | {
      readonly type: "request";
      readonly method: string;
      /** Without the query. */
      readonly path: string;
    }
  | {
      readonly type: "callback";
      /** payment_id or transaction_id. */
      readonly subject: string;
      readonly url: string;
      readonly attempt: number;
    }
);

export type JournalType = JournalEntry["type"];

export type Journal = ReturnType<typeof createJournal>;

/** Most entries to keep; the oldest are removed. */
const maxEntries = 1_000;
/** Of a longer body, only the length is kept. */
const maxBodyLength = 16_384;

/**
 * Received requests and sent callbacks, in order, for tests to assert on. Their bodies are kept
 * without card numbers, tokens and other secrets.
 */
export function createJournal(clock: SandboxClock) {
  const entries: { type: JournalType; externalId: string; json: string }[] = [];
  let made = 0;

  return {
    add({ type, externalId = "", body, ...facts }: JournalEntry): void {
      made += 1;
      const at = new Date(clock.now()).toISOString();
      const head = JSON.stringify({ number: made, type, at, external_id: externalId, ...facts });
      entries.push({ type, externalId, json: `${head.slice(0, -1)},"body":${shown(body)}}` });
      if (entries.length > maxEntries) entries.shift();
    },
    /** The entries as JSON, the oldest first; only those of the type and external_id, if given. */
    read(type?: JournalType, externalId?: string): string {
      const found = entries.filter(
        (entry) =>
          (type === undefined || entry.type === type) &&
          (externalId === undefined || entry.externalId === externalId),
      );
      return `{"entries":[${found.map(({ json }) => json).join(",")}]}`;
    },
    clear(): void {
      entries.length = 0;
    },
  };
}

/** A body as a JSON value: unchanged if it is JSON, else as a string; null if it is empty. */
function shown(body: string): string {
  if (body === "") return "null";
  if (body.length > maxBodyLength) return JSON.stringify(`[${body.length} characters]`);
  const text = redact(body);
  return isJson(text) ? text : JSON.stringify(text);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

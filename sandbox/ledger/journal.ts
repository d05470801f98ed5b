import { redact } from "../../src/secrets/redact.ts";
import type { SandboxClock } from "../clock.ts";

/** A request that the emulator received. */
export interface JournalRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly externalId: string | undefined;
  readonly body: string;
  /** The response's status; `lost` if the connection was broken instead. */
  readonly outcome: string;
}

/** One attempt to deliver a callback. */
export interface JournalCallback {
  /** payment_id or transaction_id. */
  readonly subject: string;
  readonly externalId: string;
  readonly url: string;
  readonly body: string;
  readonly attempt: number;
  /** The response's status, or an error code. */
  readonly outcome: string;
}

export type JournalType = "request" | "callback";

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
  const entries: Entry[] = [];
  let made = 0;

  function add(
    type: JournalType,
    { externalId = "", body, ...rest }: JournalRequest | JournalCallback,
  ) {
    made += 1;
    const at = new Date(clock.now()).toISOString();
    const { subject, ...facts } = { subject: undefined, ...rest };
    const head = JSON.stringify({
      number: made,
      type,
      at,
      external_id: externalId,
      ...(subject !== undefined && { subject }),
      ...facts,
    });
    entries.push({ type, externalId, json: `${head.slice(0, -1)},"body":${shown(body)}}` });
    if (entries.length > maxEntries) entries.shift();
  }

  return {
    request: (request: JournalRequest) => add("request", request),
    callback: (callback: JournalCallback) => add("callback", callback),
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

interface Entry {
  readonly type: JournalType;
  readonly externalId: string;
  readonly json: string;
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

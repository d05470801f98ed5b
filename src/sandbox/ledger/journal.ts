import { redact } from "../../secrets/redact.ts";
import type { SandboxClock } from "../clock.ts";

/** A request that came, as a test asks for it. */
export interface JournalRequest {
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  readonly externalId: string | undefined;
  readonly body: string;
  /** The answer's status; `lost` when the connection was broken off instead. */
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
  /** The answer's status, or the code of what went wrong. */
  readonly outcome: string;
}

export type JournalType = "request" | "callback";

/** What came and what was sent, in order, for tests to assert on. */
export interface Journal {
  request(request: JournalRequest): void;
  callback(callback: JournalCallback): void;
  /** As JSON, the oldest first; those of one type or one external_id where given. */
  read(type?: JournalType, externalId?: string): string;
  clear(): void;
}

/** Entries that are kept; the oldest go first. */
const maxEntries = 1_000;
/** Of a longer body only its length is kept. */
const maxBodyLength = 16_384;

/** Bodies are kept as people may see them: without card numbers, tokens and other secrets. */
export function createJournal(clock: SandboxClock): Journal {
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
    request: (request) => add("request", request),
    callback: (callback) => add("callback", callback),
    read(type, externalId) {
      const found = entries.filter(
        (entry) =>
          (type === undefined || entry.type === type) &&
          (externalId === undefined || entry.externalId === externalId),
      );
      return `{"entries":[${found.map(({ json }) => json).join(",")}]}`;
    },
    clear() {
      entries.length = 0;
    },
  };
}

interface Entry {
  readonly type: JournalType;
  readonly externalId: string;
  readonly json: string;
}

/** A body as a JSON value: itself where it is JSON, else as a text; null where there is none. */
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

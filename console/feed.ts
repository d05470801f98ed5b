import type { Start } from "../src/admin/console-api.ts";
import { ApiError, type Client, messageOf } from "./client.ts";
import { type EventData, type EventRow, eventsQuery, rowOf } from "./event-row.ts";
import { pause } from "./pause.ts";
import { deliveries } from "./sse.ts";
import { Store } from "./store.ts";

/** The state of the connection to the gateway. */
export type Connection =
  | { readonly state: "connecting" | "live" }
  | { readonly state: "waiting"; readonly reason: string; readonly retryAtMs: number }
  | { readonly state: "refused"; readonly status: number; readonly reason: string };

/** The events that the page keeps. */
export interface Held {
  /** Newest first, at most `maxRows`. */
  readonly rows: readonly EventRow[];
  /** Number of events received since the page was opened, including those no longer kept. */
  readonly received: number;
  /** Whether the cursor expired: events may be missing before the oldest row. */
  readonly restarted: boolean;
}

/** Most rows that the page keeps, however long it is open. */
export const maxRows = 500;
const flushMs = 100;
const firstPauseMs = 500;
const maxPauseMs = 15_000;

/**
 * The account's live events from the gateway's GraphQL subscription, beginning with the last ones
 * stored. After a broken connection it resumes after the last event received.
 */
export class Feed {
  readonly connection = new Store<Connection>({ state: "connecting" });
  readonly held = new Store<Held>({ rows: [], received: 0, restarted: false });
  readonly #client: Client;
  readonly #account: string;
  readonly #end = new AbortController();
  /** Behind the last event; undefined before the first one, and where the log lacks that event. */
  #cursor: string | undefined;
  #failures = 0;
  #waiting: EventRow[] = [];
  #flushing = 0;
  #retry = new AbortController();

  constructor(client: Client, account: string) {
    this.#client = client;
    this.#account = account;
  }

  async run(): Promise<void> {
    window.addEventListener("online", () => this.retryNow(), { signal: this.#end.signal });
    while (!this.#end.signal.aborted) {
      let reason: string;
      try {
        this.#cursor ??= await this.#start();
        reason = await this.#read(this.#cursor);
      } catch (error) {
        if (this.#end.signal.aborted) return;
        if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
          const { status, message } = error;
          this.connection.set({ state: "refused", status, reason: message });
          return;
        }
        reason = error instanceof ApiError ? messageOf(error) : "the connection was lost";
      }
      if (this.#end.signal.aborted) return;
      const maxMs = Math.min(firstPauseMs * 2 ** this.#failures, maxPauseMs);
      this.#failures += 1;
      await this.#pause(maxMs * (0.5 + Math.random() / 2), reason);
    }
  }

  /** Ends the pause before the next attempt. */
  retryNow(): void {
    this.#retry.abort();
  }

  close(): void {
    this.#end.abort();
    clearTimeout(this.#flushing);
  }

  async #start(): Promise<string> {
    const query = { account: this.#account };
    return (await this.#client.get<Start>("/api/start", query, this.#end.signal)).after;
  }

  /** Reads the stream behind the cursor. Resolves with why it ended. */
  async #read(after: string): Promise<string> {
    const connection = new AbortController();
    const signal = AbortSignal.any([connection.signal, this.#end.signal]);
    const response = await this.#client.stream(eventsQuery, { after }, this.#account, signal);
    this.connection.set({ state: "live" });
    this.#failures = 0;
    let reason = "the stream ended";
    for await (const { data, errors } of deliveries<EventData>(response, connection)) {
      if (data) {
        const row = rowOf(data);
        this.#add(row);
        this.#cursor = row.cursor;
        continue;
      }
      const [error] = errors ?? [];
      const { code, resumeCursor } = error?.extensions ?? {};
      if (code === "UNAUTHENTICATED" || code === "FORBIDDEN") {
        throw new ApiError(code === "FORBIDDEN" ? 403 : 401, error?.message ?? "refused");
      }
      if (code === "CURSOR_EXPIRED") this.#forget();
      else {
        this.#cursor = resumeCursor ?? this.#cursor;
        reason = error?.message ?? reason;
      }
    }
    return reason;
  }

  async #pause(ms: number, reason: string): Promise<void> {
    this.connection.set({ state: "waiting", reason, retryAtMs: Date.now() + ms });
    this.#retry = new AbortController();
    await pause(ms, this.#retry.signal, this.#end.signal);
    if (!this.#end.signal.aborted) this.connection.set({ state: "connecting" });
  }

  /** Collects rows, so that a burst of events renders the page at most ten times a second. */
  #add(row: EventRow): void {
    this.#waiting.push(row);
    if (this.#waiting.length > maxRows * 2) this.#flush();
    else this.#flushing ||= setTimeout(() => this.#flush(), flushMs);
  }

  #flush(): void {
    clearTimeout(this.#flushing);
    this.#flushing = 0;
    const fresh = this.#waiting.reverse();
    this.#waiting = [];
    const { rows, received, restarted } = this.held.value;
    this.held.set({
      rows: [...fresh, ...rows].slice(0, maxRows),
      received: received + fresh.length,
      restarted,
    });
  }

  /** Drops all rows: the log was lost, or no longer has the events after the cursor. */
  #forget(): void {
    this.#cursor = undefined;
    this.#waiting = [];
    this.held.set({ ...this.held.value, rows: [], restarted: true });
  }
}

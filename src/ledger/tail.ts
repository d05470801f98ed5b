import { Deque } from "../collections/deque.ts";
import { errorOfAbort, GatewayError } from "../errors.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import type { Cursor } from "../stores/cursor.ts";
import { assertReadable, decodeCursor } from "../stores/cursor.ts";
import type { LedgerAccount, Page } from "./account.ts";
import type { Follower } from "./hub.ts";
import type { ReadOptions, Topic } from "./log.ts";

/** What a reader needs of one account's log. */
export type StoredLog = Pick<LedgerAccount, "turns" | "follow" | "bounds" | "page">;

/** Most events that may wait for one live reader. */
export const liveBuffer = 1_000;
const pageSize = 256;

/**
 * Reads a topic of one account's log: stored events, then live ones, without a gap or a repeat
 * between the two. It attaches to live events first. Those that arrive while stored events are
 * still being read wait in the live buffer, and their cursors show which of them are repeats. If
 * the buffer overflows in that time, it is dropped, and reading continues from the store.
 * @see Ledger.read for what it throws
 */
export async function readOn(
  log: StoredLog,
  topic: Topic,
  after: Cursor | "latest" | "earliest",
  options: ReadOptions,
): Promise<AsyncIterableIterator<Event>> {
  if (after !== "latest" && after !== "earliest") decodeCursor(after);
  const tail = new Tail(log, topic, options);
  await tail.start(after);
  return tail;
}

class Tail implements AsyncIterableIterator<Event>, Follower {
  readonly #log: StoredLog;
  readonly #topic: Topic;
  readonly #options: ReadOptions;
  readonly #events = this.#read();
  readonly #queue = new Deque<Event>();
  readonly #onAbort = () => this.fail(errorOfAbort(this.#options.signal));
  /** Every event of the topic up to here was yielded. */
  #position: Cursor = "";
  #page: Page | undefined;
  #live = false;
  /** The reader has taken all earlier events, and a `next` waits for another. */
  #waits = false;
  #overflowed = false;
  #ended = false;
  #failure: Error | undefined;
  #detach: (() => void) | undefined;
  #wake: (() => void) | undefined;

  constructor(log: StoredLog, topic: Topic, options: ReadOptions) {
    this.#log = log;
    this.#topic = topic;
    this.#options = options;
  }

  /** Attaches to live events and fixes the cursor to read from. */
  async start(after: Cursor | "latest" | "earliest"): Promise<void> {
    const { signal } = this.#options;
    if (signal.aborted) throw errorOfAbort(signal);
    signal.addEventListener("abort", this.#onAbort, { once: true });
    try {
      this.#detach = await this.#log.follow(this.#topic, this);
      if (after === "latest") {
        this.#position = (await this.#log.bounds()).tail;
      } else if (after === "earliest") {
        // Read the first page now, or the retention could delete what `earliest` stands for.
        this.#page = await this.#nextPage(undefined);
        this.#position = this.#page.bounds.floor;
      } else {
        this.#position = after;
        this.#page = await this.#nextPage(after);
      }
      if (this.#failure) throw this.#failure;
      this.#options.onStart?.(this.#position);
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  event(event: Event): void {
    if (this.#ended || this.#overflowed) return;
    if (this.#live && event.cursor <= this.#position) return;
    if (this.#waits && this.#options.push?.(event)) {
      this.#position = event.cursor;
      return;
    }
    this.#waits = false;
    if (this.#queue.length < liveBuffer) {
      this.#queue.push(event);
      this.#wake?.();
      return;
    }
    this.#queue.clear();
    if (!this.#live) {
      this.#overflowed = true;
      return;
    }
    const details = { reason: "SLOW_CONSUMER", resumeCursor: this.#position } as const;
    const message = "events were read too slowly: resume from the last cursor";
    this.fail(new GatewayError("RESOURCE_EXHAUSTED", message, details));
  }

  fail(given: Error): void {
    if (this.#ended) return;
    // The live delivery has lost its own place in the log: who comes back with its cursor hears
    // whether that is lost too.
    const message = "live events were interrupted: resume from the last cursor";
    const details = { reason: "STORE_UNAVAILABLE", retryAfterMs: 1_000 } as const;
    const error = isOutOfRange(given) ? new GatewayError("UNAVAILABLE", message, details) : given;
    this.#failure = error;
    this.#end();
    this.#options.onFail?.(error);
  }

  next(): Promise<IteratorResult<Event>> {
    return this.#events.next();
  }

  /** Also ends a `next` that waits for an event. */
  return(): Promise<IteratorResult<Event>> {
    this.#end();
    return this.#events.return(undefined);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async *#read(): AsyncGenerator<Event, undefined> {
    try {
      yield* this.#stored();
      this.#live = true;
      for (;;) {
        const event = this.#queue.shift();
        if (!this.#goesOn()) return;
        if (event) {
          if (event.cursor <= this.#position) continue;
          this.#position = event.cursor;
          yield event;
          continue;
        }
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          this.#waits = true;
        });
        this.#waits = false;
      }
    } finally {
      this.#end();
    }
  }

  async *#stored(): AsyncGenerator<Event, undefined> {
    for (;;) {
      const page = this.#page;
      this.#page = undefined;
      for (const event of page?.events ?? []) {
        await this.#log.turns.take();
        if (!this.#goesOn()) return;
        this.#position = event.cursor;
        yield event;
      }
      if (page) this.#position = page.upTo;
      if (!this.#goesOn()) return;
      const caughtUp = page === undefined || page.upTo === page.bounds.tail;
      if (caughtUp && !this.#overflowed) return;
      // Queue live events again before the page is read: what the page misses is in the queue.
      this.#overflowed = false;
      this.#page = await this.#nextPage(this.#position);
    }
  }

  async #nextPage(after: Cursor | undefined): Promise<Page> {
    const page = await this.#log.turns.page(() => this.#log.page(this.#topic, after, pageSize));
    if (after !== undefined) assertReadable(after, page.bounds);
    return page;
  }

  #goesOn(): boolean {
    const error = this.#failure;
    if (!error) return !this.#ended;
    if (!(error instanceof GatewayError) || isOutOfRange(error)) throw error;
    // A reader that has received no event has no other cursor.
    const { code, message, cause } = error;
    const details = { resumeCursor: this.#position, ...error.details, cause };
    throw new GatewayError(code, message, details);
  }

  #end(): void {
    this.#ended = true;
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    this.#detach?.();
    this.#queue.clear();
    this.#page = undefined;
    this.#wake?.();
  }
}

function isOutOfRange(error: Error): boolean {
  return error instanceof GatewayError && error.code === "OUT_OF_RANGE";
}

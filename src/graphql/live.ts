import type { Call, Push } from "../core/core.ts";
import { invalidFields } from "../core/validate.ts";
import { GatewayError } from "../errors.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { cutUnlessRead } from "../live/reader.ts";
import type { ResultOf } from "./prepared-operation.ts";

/** An event, or the error that ended the stream. */
export type Delivery = { readonly event: Event } | { readonly error: unknown };

/** The event of a delivery. @throws the error of a delivery that is one */
export function received(delivery: Delivery): Event {
  if ("event" in delivery) return delivery.event;
  throw delivery.error ?? new GatewayError("INTERNAL", "the stream failed");
}

/**
 * A stream of the core for one client of this edge. `return()` and the call's signal, whichever
 * comes first, end the stream in the core. An error is the last delivery and is not thrown, so that
 * it is executed as events are. What executes them does not pass cursors on: the transport that
 * sends them reads those here.
 */
export class Live implements AsyncIterableIterator<Delivery> {
  /** The cursor from which a client resumes that has received every delivery so far. */
  cursor: string | undefined = undefined;
  /** Set by the operation if it can share results with identical subscriptions. */
  resultOf: ResultOf | undefined = undefined;
  /** Set by the transport once it can write shared results to the client by itself. */
  push: Push | undefined = undefined;
  isOpen = false;
  /** The cursor that the stream starts from, unless the caller named it or an event comes first. */
  start: string | undefined = undefined;
  /** Set when the last delivery is an error, which ended the stream. */
  failure: { readonly error: unknown } | undefined = undefined;
  /** The cursor in the header `Last-Event-ID`. */
  readonly lastEventId: string | undefined;
  readonly #opening = Promise.withResolvers<void>();
  readonly #signal: AbortSignal;
  /** Aborts with the call's signal, or earlier if a client ends one of several streams. */
  readonly #gone = new AbortController();
  readonly #events: () => AsyncIterator<Event>;
  #iterator: AsyncIterator<Event> | undefined;
  #isOver = false;
  #isFailing = false;
  #onFailing: (() => void) | undefined;

  constructor(
    { deadlineMs: _, ...call }: Call,
    lastEventId: string | undefined,
    open: (call: Call) => AsyncIterable<Event>,
  ) {
    this.lastEventId = lastEventId;
    this.#signal = call.signal;
    const hooks: Partial<Call> = {
      signal: this.#gone.signal,
      onOpen: (from) => {
        this.isOpen = true;
        this.start = from;
        this.#opening.resolve();
      },
      onFail: () => this.#fail(),
      push: (event) => {
        if (this.#isOver || !this.push?.(event)) return false;
        this.cursor = event.cursor;
        return true;
      },
    };
    this.#events = () => open({ ...call, ...hooks })[Symbol.asyncIterator]();
    call.signal.addEventListener("abort", this.#endQuietly, { once: true });
  }

  /** Resolves when the stream is open: from then on it misses no event. */
  get opened(): Promise<void> {
    return this.#opening.promise;
  }

  async next(): Promise<IteratorResult<Delivery>> {
    if (this.#isOver || this.#signal.aborted) return over;
    try {
      this.#iterator ??= this.#events();
      const { done, value } = await this.#iterator.next();
      if (!done) {
        this.cursor = value.cursor;
        return { done: false, value: { event: value } };
      }
      await this.#end();
    } catch (thrown) {
      if (this.#isOver) return over;
      this.#endQuietly();
      const error = this.lastEventId === undefined ? thrown : aboutHeader(thrown);
      this.failure = { error };
      // A client that has received no cursor resumes from the one in its own request. Sent as an
      // `id`, that one would come back in `Last-Event-ID` and count as the end of an earlier stream.
      if ((this.cursor ?? this.start) !== undefined && error instanceof GatewayError) {
        this.cursor = error.details.resumeCursor ?? this.cursor;
      }
      return { done: false, value: { error } };
    }
    return over;
  }

  async return(): Promise<IteratorResult<Delivery>> {
    await this.#end().catch(() => undefined);
    return over;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Called by the transport: how its client is cut if it does not read on once the stream fails,
   * which is told even while its client reads nothing.
   * @returns a function that cancels this
   */
  cutUnlessRead(isUnread: () => boolean, cut: () => void): () => void {
    let stop: (() => void) | undefined;
    this.#onFailing = () => {
      stop = cutUnlessRead(isUnread, cut);
    };
    if (this.#isFailing) this.#onFailing();
    return () => {
      this.#onFailing = undefined;
      stop?.();
    };
  }

  #fail(): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#onFailing?.();
  }

  async #end(): Promise<void> {
    this.#isOver = true;
    this.#signal.removeEventListener("abort", this.#endQuietly);
    this.#gone.abort(this.#signal.aborted ? this.#signal.reason : streamLeft);
    await this.#iterator?.return?.();
  }

  /** Errors while a stream is closed are dropped: it has no reader any more. */
  readonly #endQuietly = () => void this.#end().catch(() => undefined);
}

const over = { done: true, value: undefined } as const;
const streamLeft = new GatewayError("CANCELLED", "the caller went away");

/** An error about the cursor names the header that the cursor came in. */
function aboutHeader(error: unknown): unknown {
  const [field] = (error instanceof GatewayError && error.details.fields) || [];
  if (field?.path !== "after_cursor") return error;
  return invalidFields([{ ...field, path: "Last-Event-ID" }]);
}

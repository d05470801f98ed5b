import type { Call, Push } from "../core/core.ts";
import { GatewayError, invalidFields } from "../errors.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import type { ResultOf } from "./prepared-operation.ts";

/** An event, or the error that ended the stream. */
export type Delivery = { readonly event: Event } | { readonly error: unknown };

/** The event of a delivery. @throws the error of a delivery that is one */
export function received(delivery: Delivery): Event {
  if ("event" in delivery) return delivery.event;
  throw delivery.error ?? new GatewayError("INTERNAL", "the stream failed");
}

/**
 * A stream of the core for one client of this edge, which its reader or the call's signal ends. An
 * error is the last delivery and is not thrown, so that it is executed as events are. What executes
 * them does not pass cursors on: the transport that sends them reads those here.
 */
export class Live {
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
  /** Resolves when the stream is open: from then on it misses no event. */
  readonly opened: Promise<void>;
  /** Resolves when the stream fails, even while its client reads nothing. */
  readonly failing: Promise<void>;
  readonly #deliveries: AsyncGenerator<Delivery, void>;

  constructor(
    { deadlineMs: _, ...call }: Call,
    lastEventId: string | undefined,
    open: (call: Call) => AsyncIterable<Event>,
  ) {
    this.lastEventId = lastEventId;
    const opening = Promise.withResolvers<void>();
    const failing = Promise.withResolvers<void>();
    this.opened = opening.promise;
    this.failing = failing.promise;
    const { signal } = call;
    const hooks: Partial<Call> = {
      onOpen: (from) => {
        this.isOpen = true;
        this.start = from;
        opening.resolve();
      },
      onFail: () => failing.resolve(),
      push: (event) => {
        if (signal.aborted || !this.push?.(event)) return false;
        this.cursor = event.cursor;
        return true;
      },
    };
    this.#deliveries = this.#deliver(signal, () => open({ ...call, ...hooks }));
  }

  /** The same for every reader. It opens the stream when it is first read. */
  [Symbol.asyncIterator](): AsyncGenerator<Delivery, void> {
    return this.#deliveries;
  }

  async *#deliver(
    signal: AbortSignal,
    open: () => AsyncIterable<Event>,
  ): AsyncGenerator<Delivery, void> {
    try {
      if (signal.aborted) return;
      for await (const event of open()) {
        this.cursor = event.cursor;
        yield { event };
      }
    } catch (thrown) {
      if (signal.aborted) return;
      const error = this.lastEventId === undefined ? thrown : aboutHeader(thrown);
      this.failure = { error };
      // A client that has received no cursor resumes from the one in its own request. Sent as an
      // `id`, that one would come back in `Last-Event-ID` and count as the end of an earlier stream.
      if ((this.cursor ?? this.start) !== undefined && error instanceof GatewayError) {
        this.cursor = error.details.resumeCursor ?? this.cursor;
      }
      yield { error };
    }
  }
}

/** An error about the cursor names the header that the cursor came in. */
function aboutHeader(error: unknown): unknown {
  const [field] = (error instanceof GatewayError && error.details.fields) || [];
  if (field?.path !== "after_cursor") return error;
  return invalidFields([{ ...field, path: "Last-Event-ID" }]);
}

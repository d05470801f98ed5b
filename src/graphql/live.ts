import type { Push } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import type { ResultOf } from "./shared-results.ts";

/**
 * The state that a subscription shares with the transport that sends its events. What executes
 * events between the two does not pass cursors on. Every request has one, but few open a stream: the
 * promise is created when first needed.
 */
export class Live {
  /**
   * The cursor in the header `Last-Event-ID`; an empty one counts as absent. It overrides the
   * argument `after`: an EventSource that reconnects repeats its URL, with the original argument.
   */
  readonly lastEventId: string | undefined;
  /** The cursor from which a client resumes that has received every delivery so far. */
  cursor: string | undefined = undefined;
  /** Set by the operation if it can share results with identical subscriptions. */
  resultOf: ResultOf | undefined = undefined;
  /** Set by the transport once it can write shared results to the client by itself. */
  push: Push | undefined = undefined;
  /** Set by the transport: called when the stream fails, even while its client reads nothing. */
  onFailing: (() => void) | undefined = undefined;
  isOpen = false;
  /** Whether the stream has failed. */
  isFailing = false;
  /** The cursor that the stream starts from, unless the caller named it or an event comes first. */
  start: string | undefined = undefined;
  /** Set when the last delivery is an error, which ended the stream. */
  failure: { readonly error: unknown } | undefined = undefined;
  #opening: PromiseWithResolvers<void> | undefined;

  constructor(lastEventId: string | undefined) {
    this.lastEventId = lastEventId || undefined;
  }

  /** Resolves when the stream is open: from then on it misses no event. */
  get opened(): Promise<void> {
    this.#opening ??= Promise.withResolvers<void>();
    if (this.isOpen) this.#opening.resolve();
    return this.#opening.promise;
  }

  open(from: string | undefined): void {
    this.isOpen = true;
    this.start = from;
    this.#opening?.resolve();
  }

  fail(): void {
    if (this.isFailing) return;
    this.isFailing = true;
    this.onFailing?.();
  }

  failed(error: unknown): void {
    this.failure = { error };
    // A client that has received no cursor resumes from the one in its own request. Sent as an
    // `id`, that one would come back in `Last-Event-ID` and count as the end of an earlier stream.
    if ((this.cursor ?? this.start) === undefined || !(error instanceof GatewayError)) return;
    this.cursor = error.details.resumeCursor ?? this.cursor;
  }
}

import type { Push } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";

/** What an event is to all who asked for it by one document with the same variables. */
export interface SharedResult {
  /** The result of the operation, as JSON. */
  readonly json: string;
  /** What `encode` makes of it, once for all of them. */
  as<Encoded>(encode: Encode<Encoded>): Encoded;
}

export type Encode<Encoded> = (json: string, event: Event) => Encoded;

/** Undefined for an event of which the operation shows what has to be read, or what fails. */
export type ResultOf = (event: Event) => SharedResult | undefined;

/**
 * What a subscription and the event stream that carries it tell each other: the GraphQL engine
 * stands between the two and knows nothing of cursors.
 */
export interface Live {
  /**
   * The cursor that a client resumes from by the header `Last-Event-ID`. It goes over the argument
   * `after`: an EventSource that connects again repeats its address, with the argument as it was.
   */
  readonly lastEventId: string | undefined;
  /** Where a client goes on from that has every delivery up to the last one. */
  cursor: string | undefined;
  /** Set when the last delivery is an error, which ended the stream. */
  readonly failure: { readonly error: unknown } | undefined;
  readonly isOpen: boolean;
  /** The place that the open stream goes on from; undefined when its first event tells. */
  readonly start: string | undefined;
  /** Resolves when the stream has found its place. */
  readonly opened: Promise<void>;
  /** Whether the stream has failed. */
  readonly isFailing: boolean;
  /** Set by the transport: hears that the stream has failed, also while its client reads nothing. */
  onFailing: (() => void) | undefined;

  /** Set by the operation: what its client gets of an event, where all who ask the same get the same. */
  resultOf: ResultOf | undefined;
  /** Set by the transport once it can write events to the client past the engine. */
  push: Push | undefined;

  open(from: string | undefined): void;
  fail(): void;
  failed(error: unknown): void;
}

/** @param lastEventId the header; an empty one is none */
export function createLive(lastEventId: string | undefined): Live {
  return new LiveStream(lastEventId || undefined);
}

/** Each request has one, and few open a stream: nothing is made before it is needed. */
class LiveStream implements Live {
  readonly lastEventId: string | undefined;
  cursor: string | undefined = undefined;
  resultOf: ResultOf | undefined = undefined;
  push: Push | undefined = undefined;
  onFailing: (() => void) | undefined = undefined;
  isOpen = false;
  isFailing = false;
  start: string | undefined = undefined;
  failure: Live["failure"] = undefined;
  #opening: PromiseWithResolvers<void> | undefined;

  constructor(lastEventId: string | undefined) {
    this.lastEventId = lastEventId;
  }

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
    // One that has had nothing goes on from where it said: that was not where its stream ended.
    if ((this.cursor ?? this.start) === undefined || !(error instanceof GatewayError)) return;
    this.cursor = error.details.resumeCursor ?? this.cursor;
  }
}

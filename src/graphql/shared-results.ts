import { oncePerEvent } from "../core/once-per-event.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";

/**
 * The result of one event for all subscriptions with the same document and variables; undefined if
 * it needs a read or has an error, so that each of them executes the event.
 */
export type ResultOf = (event: Event) => SharedResult | undefined;

export type Encode<Encoded> = (json: string, event: Event) => Encoded;

export class SharedResult {
  readonly #json: string;
  readonly #event: Event;
  readonly #encoded = new Map<unknown, unknown>();

  constructor(json: string, event: Event) {
    this.#json = json;
    this.#event = event;
  }

  /** The result as `encode` writes it, encoded once for all of them. */
  as<Encoded>(encode: Encode<Encoded>): Encoded {
    let encoded = this.#encoded.get(encode);
    if (encoded === undefined) {
      encoded = encode(this.#json, this.#event);
      this.#encoded.set(encode, encoded);
    }
    return encoded as Encoded;
  }
}

/**
 * Lets the subscriptions of one document share results, each by the `key` of its variables.
 * `dataOf` is called once for each key and event, with a context that offers nothing.
 */
export function shareResults() {
  const resultsOf = oncePerEvent(() => new Map<string, SharedResult | null>());
  return (key: string, dataOf: (event: Event, context: object) => object | undefined): ResultOf =>
    (event) => {
      const results = resultsOf(event);
      let result = results.get(key);
      if (result === undefined) {
        const data = dataOf(event, nothing);
        result = data ? new SharedResult(JSON.stringify({ data }), event) : null;
        results.set(key, result);
      }
      return result ?? undefined;
    };
}

/** A context that offers nothing: a field that needs more than the event's own data throws. */
const nothing: object = new Proxy(
  {},
  {
    get() {
      throw new Error("it is not known from the event alone");
    },
  },
);

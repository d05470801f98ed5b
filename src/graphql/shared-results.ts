import { oncePerEvent } from "../core/once-per-event.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";

/**
 * The result of one event for all subscriptions with the same document and variables; undefined if
 * it needs a read or has an error, so that each of them executes the event.
 */
export type ResultOf = (event: Event) => SharedResult | undefined;

export interface SharedResult {
  /** The result as `encode` writes it, encoded once for all of them. */
  as<Encoded>(encode: (json: string, event: Event) => Encoded): Encoded;
}

function sharedResult(data: object, event: Event): SharedResult {
  const json = JSON.stringify({ data });
  const encoded = new Map<unknown, unknown>();
  return {
    as(encode) {
      if (!encoded.has(encode)) encoded.set(encode, encode(json, event));
      return encoded.get(encode) as ReturnType<typeof encode>;
    },
  };
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
        result = data ? sharedResult(data, event) : null;
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

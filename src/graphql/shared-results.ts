import { oncePerEvent } from "../core/once-per-event.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import type { ShowEvent } from "./compiled-operation.ts";
import type { Encode, SharedResult } from "./live.ts";
import type { Variables } from "./variables.ts";

/** The shared result of an event. @param key the same for the same variables */
export type Show = (event: Event, key: string, variables: Variables) => SharedResult | undefined;

/**
 * Lets identical subscriptions share the result of an event. A shared result is made of the event
 * alone: GraphQL.js executes a selection that needs more, for each client.
 * @param compiled undefined if GraphQL.js has to execute every event
 */
export function shareResults(compiled: ShowEvent | undefined): Show {
  if (!compiled) return () => undefined;
  const resultsOf = oncePerEvent(() => new Map<string, SharedResult | null>());
  return (event, key, variableValues) => {
    const results = resultsOf(event);
    let result = results.get(key);
    if (result === undefined) {
      const data = compiled(event, { contextValue: nothing, variableValues });
      result = data ? new Result(JSON.stringify({ data }), event) : null;
      results.set(key, result);
    }
    return result ?? undefined;
  };
}

class Result implements SharedResult {
  readonly json: string;
  readonly #event: Event;
  readonly #encoded = new Map<unknown, unknown>();

  constructor(json: string, event: Event) {
    this.json = json;
    this.#event = event;
  }

  as<Encoded>(encode: Encode<Encoded>): Encoded {
    let encoded = this.#encoded.get(encode);
    if (encoded === undefined) {
      encoded = encode(this.json, this.#event);
      this.#encoded.set(encode, encoded);
    }
    return encoded as Encoded;
  }
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

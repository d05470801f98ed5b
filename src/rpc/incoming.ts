import { type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";

/** What handlers need from the port about a request, beyond what Connect passes on. */
export interface Incoming {
  /** The URL as it was received; parsing it would re-encode characters that are not ASCII. */
  readonly url: string;
  /** Aborts when the connection has reached its maximum age and its streams must end. */
  readonly ending?: AbortSignal | undefined;
  /** Gives back the call's slot among those in flight. */
  readonly leave: () => void;
  /** Sends the headers of a stream's response now, since its first message may come late. */
  readonly sendHeaders: (header: Headers) => void;
}

export function valuesOf(incoming: Incoming): ContextValues {
  return createContextValues().set(key, incoming);
}

/** Undefined for a request that did not arrive through the port. */
export function incomingOf(values: ContextValues): Incoming | undefined {
  return values.get(key);
}

const key = createContextKey<Incoming | undefined>(undefined, { description: "incoming" });

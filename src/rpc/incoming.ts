import { type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";

/** What the port knows of a request and its handling needs, from the first byte on. */
export interface Incoming {
  /** The address as it came: what reads it re-encodes what is not ASCII. */
  readonly url: string;
  /** Aborts when the connection is to go and its streams have to end. */
  readonly ending?: AbortSignal | undefined;
  /** Gives the call's slot among those in flight back. */
  readonly leave: () => void;
  /** Sends the headers of a stream's answer now: its first message may be long in coming. */
  readonly sendHeaders: (header: Headers) => void;
}

export function valuesOf(incoming: Incoming): ContextValues {
  return createContextValues().set(key, incoming);
}

/** Undefined for a request that did not come by the port. */
export function incomingOf(values: ContextValues): Incoming | undefined {
  return values.get(key);
}

const key = createContextKey<Incoming | undefined>(undefined, { description: "incoming" });

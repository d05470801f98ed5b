import { type ConnectionLimits, defaultConnectionLimits } from "../net/connection-limits.ts";

/** Limits of the rpc listener, its connections and calls. */
export type RpcLimits = Readonly<typeof defaultLimits> & ConnectionLimits;

export const defaultLimits = {
  ...defaultConnectionLimits,
  /** Largest request message, in bytes, before and after decompression. */
  readMaxBytes: 1024 * 1024,
  /**
   * Longest that a stream lasts that needs no credentials, in milliseconds. A client opens the next
   * watch of health at once, and may count the server as unhealthy until then.
   */
  openStreamMs: 3_600_000,
};

import { type ConnectionLimits, defaultConnectionLimits } from "../net/connection-limits.ts";

export type RpcLimits = Readonly<typeof defaultLimits> & ConnectionLimits;

export const defaultLimits = {
  ...defaultConnectionLimits,
  /** Largest request message, in bytes, before and after decompression. */
  readMaxBytes: 1024 * 1024,
  /**
   * Longest that a watch of health lasts, in milliseconds. A client opens the next one at once, and
   * may count the server as unhealthy until then.
   */
  healthWatchMs: 3_600_000,
  /** Longest that a stream of reflection lasts, in milliseconds. */
  reflectionMs: 300_000,
};

import type { ExchangeFailure } from "./exchange.ts";

/**
 * What one call shows about the service's health:
 * - `answered`: the service works, whatever it answered (an error, Too Many Requests);
 * - `failed`: unreachable, the connection lost, 5xx, or an answer that was not understood;
 * - `timeout`: no answer in time;
 * - `nothing`: the gateway or the caller ended the call.
 */
export type Verdict = "answered" | "failed" | "timeout" | "nothing";

/** The verdict on an exchange that failed `lastedMs` after its start. */
export function verdictOf({ kind, cause }: ExchangeFailure, lastedMs: number): Verdict {
  switch (kind) {
    case "kept":
      return "nothing";
    case "caller":
      // A caller with a short deadline must not open the breaker for others.
      return lastedMs >= slowMs ? "timeout" : "nothing";
    case "timeout":
      return "timeout";
    case "tooLarge":
      return "answered";
    case "connection":
      return timeouts.has((cause as NodeJS.ErrnoException)?.code) ? "timeout" : "failed";
  }
}

/** A caller that leaves after this long counts as an upstream time-out. */
const slowMs = 5_000;

const timeouts: ReadonlySet<unknown> = new Set(["UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT"]);

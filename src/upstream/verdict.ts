import type { ExchangeFailure } from "./exchange.ts";

/**
 * What one call tells of the service's health:
 * - `answered`: it is there, and whatever it said of this call (an error, Too Many Requests) is its
 *   own word;
 * - `failed`: out of reach, the connection lost, 5xx, or an answer that makes no sense;
 * - `timeout`: it took its time and gave no answer;
 * - `nothing`: the call ended on our side or on the caller's.
 */
export type Verdict = "answered" | "failed" | "timeout" | "nothing";

/** What an exchange without an answer tells, that ended `lastedMs` after its start. */
export function verdictOf({ kind, cause }: ExchangeFailure, lastedMs: number): Verdict {
  switch (kind) {
    case "kept":
      return "nothing";
    case "caller":
      // Short deadlines are the callers' own; so that they cannot turn the service off for others.
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

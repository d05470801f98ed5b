import { GatewayError } from "../errors.ts";
import { maxTimerMs } from "./timeout-header.ts";

export interface AgeLimits {
  /** How long a connection takes new calls, give or take a tenth, in milliseconds; 0: for ever. */
  readonly maxConnectionAgeMs: number;
  /** How long the streams of a connection go on after that. */
  readonly connectionAgeGraceMs: number;
  /** Longest a unary call may take, whatever its caller asks for. */
  readonly maxUnaryTimeoutMs: number;
}

/** What becomes of a connection as it ages. */
export interface Aging {
  /** It is to take no new calls: those under way go on. */
  onOld(): void;
  /** Nothing that was to end by itself can be left: it is cut. */
  onEnd(): void;
}

/** The age of one connection. */
export interface ConnectionAge {
  readonly isOld: boolean;
  /**
   * Aborts when its streams are to end: with UNAVAILABLE, so that they are taken up elsewhere. Absent
   * where connections last for ever.
   */
  readonly ending: AbortSignal | undefined;
  /** Stops the clock, when the connection is closed. */
  stop(): void;
}

/**
 * Ages a connection, so that callers come to balance their calls over servers that were added since it
 * was opened. Jitter keeps connections that were opened at once from going at once.
 */
export function ageConnection(limits: AgeLimits, aging: Aging): ConnectionAge {
  const { maxConnectionAgeMs, connectionAgeGraceMs, maxUnaryTimeoutMs } = limits;
  if (maxConnectionAgeMs === 0) return ageless;
  const ending = new AbortController();
  let isOld = false;
  let timer: NodeJS.Timeout | undefined;
  const later = (ms: number, then: () => void) => {
    timer = setTimeout(then, Math.min(ms, maxTimerMs));
  };

  later(maxConnectionAgeMs * (0.9 + Math.random() * 0.2), () => {
    isOld = true;
    later(connectionAgeGraceMs, () => {
      later(maxUnaryTimeoutMs, () => aging.onEnd());
      ending.abort(tooOld());
    });
    aging.onOld();
  });
  return {
    get isOld() {
      return isOld;
    },
    ending: ending.signal,
    stop: () => clearTimeout(timer),
  };
}

const ageless: ConnectionAge = { isOld: false, ending: undefined, stop() {} };

function tooOld(): GatewayError {
  return new GatewayError(
    "UNAVAILABLE",
    "the connection has reached its maximum age: resume from the last cursor",
    { reason: "CONNECTION_AGE", retryAfterMs: 0 },
  );
}

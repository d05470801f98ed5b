import { RollingCount } from "./rolling-count.ts";
import type { Verdict } from "./verdict.ts";

/**
 * The admission of a call. Each call must settle it once: an unsettled probe blocks all later
 * calls.
 */
export interface Pass {
  settle(verdict: Verdict): void;
}

/** With fewer calls than this in ten seconds, `failureShare` does not open the breaker. */
const minimumCalls = 20;
/** Opens when at least this share of the calls of ten seconds failed. */
const failureShare = 0.5;
/** Opens after so many time-outs without an answer in between, however few the calls. */
const timeoutsInARow = 5;
/** The first pause; each failed probe doubles it. Up to a half is taken off at random. */
const firstPauseMs = 1_000;

export type BreakerState = "closed" | "open" | "halfOpen";

export interface BreakerOptions {
  readonly maxPauseMs: number;
  /** Milliseconds on a clock that never goes back. */
  readonly now: () => number;
  /** 0 to 1. */
  readonly random: () => number;
  readonly onState: (state: BreakerState) => void;
}

/**
 * Circuit breaker: keeps calls away from a service that fails. Closed, it lets all calls through
 * and counts failures; open, it refuses all; after a pause it is half open and lets one call
 * through as a probe. An answer to the probe closes the breaker, a failure opens it for a longer
 * pause.
 */
export function createBreaker({ maxPauseMs, now, random, onState }: BreakerOptions) {
  let calls = new RollingCount();
  let failures = new RollingCount();
  let timeouts = 0;
  let openings = 0;
  let openUntil = 0;
  /** The pass that `enter` gives out, or the running probe. Other passes no longer count. */
  let current: Pass | undefined = createClosedPass();
  let state: BreakerState = "closed";

  /** One pass for all calls until the breaker opens. */
  function createClosedPass(): Pass {
    const pass: Pass = {
      settle(verdict) {
        if (pass !== current || verdict === "nothing") return;
        const at = now();
        calls.add(at);
        if (verdict === "answered") {
          timeouts = 0;
          return;
        }
        failures.add(at);
        if (verdict === "timeout") timeouts++;
        if (isFailing(at)) open(at);
      },
    };
    return pass;
  }

  function isFailing(at: number): boolean {
    if (timeouts >= timeoutsInARow) return true;
    const total = calls.total(at);
    return total >= minimumCalls && failures.total(at) >= failureShare * total;
  }

  function open(at: number): void {
    const full = Math.min(firstPauseMs * 2 ** openings++, maxPauseMs);
    openUntil = at + full * (1 - random() / 2);
    current = undefined;
    state = "open";
    onState(state);
  }

  function close(): void {
    calls = new RollingCount();
    failures = new RollingCount();
    timeouts = 0;
    openings = 0;
    current = createClosedPass();
    state = "closed";
    onState(state);
  }

  function createProbe(): Pass {
    const probe: Pass = {
      settle(verdict) {
        if (probe !== current) return;
        current = undefined;
        if (verdict === "answered") close();
        else if (verdict !== "nothing") open(now());
      },
    };
    return probe;
  }

  /** Milliseconds until a call may be let through; undefined when one may be now. */
  function refusal(): number | undefined {
    if (state === "closed") return undefined;
    if (current) return firstPauseMs; // The probe is in flight.
    const left = openUntil - now();
    return left > 0 ? left : undefined;
  }

  return {
    refusal,
    /** Lets one call through, which must be sent now; undefined while `refusal` returns a pause. */
    enter(): Pass | undefined {
      if (state === "closed") return current;
      if (refusal() !== undefined) return undefined;
      current = createProbe();
      if (state !== "halfOpen") {
        state = "halfOpen";
        onState(state);
      }
      return current;
    },
  };
}

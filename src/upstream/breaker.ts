/**
 * What one call shows about the service's health:
 * - `answered`: the service works, whatever it answered (an error, Too Many Requests);
 * - `failed`: unreachable, the connection lost, 5xx, or an answer that was not understood;
 * - `timeout`: no answer in time;
 * - `nothing`: the gateway or the caller ended the call.
 */
export type Verdict = "answered" | "failed" | "timeout" | "nothing";

/** Calls are counted over this time, and then anew. */
const windowMs = 10_000;
/** With fewer calls than this in the window, `failureShare` does not open the breaker. */
const minimumCalls = 20;
/** Opens when at least this share of the window's calls failed. */
const failureShare = 0.5;
/** Opens after so many time-outs without an answer in between, however few the calls. */
const timeoutsInARow = 5;
/** The first pause; each failed probe doubles it. Up to a half is taken off at random. */
const firstPauseMs = 1_000;

type BreakerState = "closed" | "open" | "halfOpen";

export interface BreakerOptions {
  readonly maxPauseMs: number;
  /** Milliseconds on a clock that never goes back. */
  readonly now: () => number;
  /** 0 to 1. */
  readonly random: () => number;
  readonly onState: (state: BreakerState) => void;
}

export type Breaker = ReturnType<typeof createBreaker>;

/**
 * Circuit breaker: keeps calls away from a service that fails. Closed, it lets all calls through
 * and counts failures; open, it refuses all; after a pause it is half open and lets one call
 * through as a probe. An answer to the probe closes the breaker, a failure opens it for a longer
 * pause.
 */
export function createBreaker({ maxPauseMs, now, random, onState }: BreakerOptions) {
  let state: BreakerState = "closed";
  let window = { endsAt: 0, calls: 0, failures: 0 };
  let timeouts = 0;
  let openings = 0;
  let openUntil = 0;
  let probing = false;
  /** Which calls count: those that were let through since it last changed. */
  let era = 0;

  function change(to: BreakerState): void {
    era++;
    state = to;
    onState(to);
  }

  function open(): void {
    const full = Math.min(firstPauseMs * 2 ** openings++, maxPauseMs);
    openUntil = now() + full * (1 - random() / 2);
    change("open");
  }

  function close(): void {
    window = { endsAt: 0, calls: 0, failures: 0 };
    timeouts = 0;
    openings = 0;
    change("closed");
  }

  function count(verdict: Verdict): void {
    if (verdict === "nothing") return;
    if (now() >= window.endsAt) window = { endsAt: now() + windowMs, calls: 0, failures: 0 };
    window.calls++;
    if (verdict === "answered") {
      timeouts = 0;
      return;
    }
    window.failures++;
    if (verdict === "timeout") timeouts++;
    const { calls, failures } = window;
    const isFailing = calls >= minimumCalls && failures >= failureShare * calls;
    if (isFailing || timeouts >= timeoutsInARow) open();
  }

  function judgeProbe(verdict: Verdict): void {
    probing = false;
    era++;
    if (verdict === "answered") close();
    else if (verdict !== "nothing") open();
  }

  /** Milliseconds until a call may be let through; undefined when one may be now. */
  function refusal(): number | undefined {
    if (state === "closed") return undefined;
    if (probing) return firstPauseMs;
    const left = openUntil - now();
    return left > 0 ? left : undefined;
  }

  return {
    refusal,
    /**
     * Lets one call through, which must be sent now; undefined while `refusal` returns a pause.
     * @returns what takes the verdict on the call, once: a probe without one blocks all later calls
     */
    enter(): ((verdict: Verdict) => void) | undefined {
      if (refusal() !== undefined) return undefined;
      if (state === "open") change("halfOpen");
      probing = state === "halfOpen";
      const [judge, entered] = [probing ? judgeProbe : count, era];
      return (verdict) => {
        if (entered === era) judge(verdict);
      };
    },
  };
}

import type { Permit, RateLimitHeaders } from "../bucket.ts";
import { systemClock } from "../clock.ts";
import { readRateLimitHeaders } from "../headers.ts";
import type { LoneShare } from "./lone-share.ts";
import type { SharedBudget, SharedToken } from "./shared-budget.ts";

/** What a permit's bucket does about what the permit is told. */
export interface PermitHost {
  /** Asks Redis within so many milliseconds, which takes the reports along. */
  askWithin(ms: number): void;
  /** Sends nothing until the answer's Reset; the time until then, on the monotonic clock. */
  hold(answer: RateLimitHeaders): number;
  /** A token is free, or tokens will come later than was thought. */
  settled(change: "freed" | "later" | undefined): void;
}

/** A permit for a token that Redis granted: what it is told goes to Redis. */
export function sharedPermit(token: SharedToken, shared: SharedBudget, host: PermitHost): Permit {
  return settledOnce({
    observe(answer) {
      const reading = readRateLimitHeaders(answer);
      const { limit } = shared;
      shared.observe(token, reading);
      // A new limit is told at once, a shortage soon, and the rest when there is something to ask.
      const { limit: told = limit, remaining = limit } = reading;
      if (told !== limit) host.askWithin(0);
      else if (remaining < limit - token.out) host.askWithin(FLUSH_MS);
    },
    rejected(answer) {
      const until = host.hold(answer);
      shared.observe(token, readRateLimitHeaders(answer));
      shared.reject(until, token);
    },
    release() {
      shared.giveBack(token);
      host.askWithin(FLUSH_MS);
      host.settled("freed");
    },
  });
}

/** Takes from the replica's own share; Redis hears of the limit and of rejections when it is back. */
export function lonePermit(
  lone: LoneShare,
  shared: SharedBudget,
  host: PermitHost,
  now: number,
): Permit {
  const taken = lone.take(now);
  shared.useUncounted(now);
  return settledOnce({
    observe(answer) {
      const later = lone.budget.observe(taken, answer, systemClock.now());
      const { limit } = readRateLimitHeaders(answer);
      if (limit !== undefined) shared.tellLimit(limit, now);
      host.settled(later ? "later" : undefined);
    },
    rejected(answer) {
      const until = host.hold(answer);
      lone.budget.reject(taken, answer, systemClock.now());
      shared.reject(until);
    },
    release() {
      lone.budget.giveBack(taken);
      host.settled("freed");
    },
  });
}

/** Only the first thing that a permit is told counts. */
function settledOnce({ observe, rejected, release }: Permit): Permit {
  let settled = false;
  const once = (settle: () => void) => {
    if (settled) return;
    settled = true;
    settle();
  };
  return {
    observe: (answer) => once(() => observe(answer)),
    rejected: (answer) => once(() => rejected(answer)),
    release: () => once(release),
  };
}

/** Longest that a report waits for a question to go along with. */
const FLUSH_MS = 50;

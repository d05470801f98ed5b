import type { Call, Core } from "../core/core.ts";
import type { AnswerHeader } from "./gated-call.ts";

/**
 * Puts the budget of the caller's account, as the bucket knows it now, into an answer's headers. An
 * answer that is made already is never lost for them: where the budget can't be told, they are left
 * as they were.
 */
export function setRateLimit(header: AnswerHeader, core: Core, call: Call): void {
  try {
    const { limit, remaining, resetSeconds } = core.rateLimit(call);
    header.set("x-ratelimit-limit", String(limit));
    header.set("x-ratelimit-remaining", String(remaining));
    header.set("x-ratelimit-reset", String(resetSeconds));
  } catch {}
}

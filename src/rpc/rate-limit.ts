import type { Call, Core } from "../core/core.ts";
import { rateLimitHeaders } from "../net/rate-limit-headers.ts";
import type { AnswerHeader } from "./gated-call.ts";

/**
 * Puts the budget of the caller's account, as the bucket knows it now, into an answer's headers. An
 * answer that is made already is never lost for them: where the budget can't be told, they are left
 * as they were.
 */
export function setRateLimit(header: AnswerHeader, core: Core, call: Call): void {
  try {
    for (const [name, value] of Object.entries(rateLimitHeaders(core.rateLimit(call)))) {
      header.set(name, value);
    }
  } catch {}
}

import type { Call, Core } from "../core/core.ts";
import { rateLimitHeaders } from "../net/rate-limit-headers.ts";
import type { AnswerHeader } from "./gated-call.ts";

/**
 * The budget of the caller's account, as the bucket knows it now, in headers. An answer that is made
 * already is never lost for them: where the budget can't be told, there are none.
 */
export function rateLimitOf(core: Core, call: Call): Readonly<Record<string, string>> {
  try {
    return rateLimitHeaders(core.rateLimit(call));
  } catch {
    return {};
  }
}

/** Puts the same into an answer's headers. */
export function setRateLimit(header: AnswerHeader, core: Core, call: Call): void {
  for (const [name, value] of Object.entries(rateLimitOf(core, call))) header.set(name, value);
}

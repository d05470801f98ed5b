import type { DescMethod } from "@bufbuild/protobuf";
import type { Call, Core } from "../core/core.ts";
import { moneyKindOf } from "../model/money-methods.ts";
import { rateLimitHeaders } from "../ratelimit/headers.ts";
import type { AnswerHeader } from "./served-call.ts";

/**
 * Sets headers with the current rate budget of the caller's account. Sets none if the budget cannot
 * be read, so that a finished response is never lost because of them.
 */
export function setRateLimit(
  header: AnswerHeader,
  core: Core,
  call: Call,
  method: DescMethod,
): void {
  try {
    const headers = rateLimitHeaders(core.rateLimit(call), moneyKindOf(method) !== undefined);
    for (const [name, value] of Object.entries(headers)) header.set(name, value);
  } catch {
    // The answer goes out without them.
  }
}

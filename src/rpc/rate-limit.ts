import type { DescMethod } from "@bufbuild/protobuf";
import type { Call, Core } from "../core/core.ts";
import { moneyKindOf } from "../model/money-methods.ts";
import { rateLimitHeaders } from "../net/rate-limit-headers.ts";
import type { AnswerHeader } from "./gated-call.ts";

/**
 * Headers with the current rate budget of the caller's account. Empty if the budget cannot be read,
 * so that a finished response is never lost because of them.
 */
export function rateLimitOf(
  core: Core,
  call: Call,
  method: DescMethod,
): Readonly<Record<string, string>> {
  try {
    return rateLimitHeaders(core.rateLimit(call), moneyKindOf(method) !== undefined);
  } catch {
    return {};
  }
}

/** Sets the same headers on a response. */
export function setRateLimit(
  header: AnswerHeader,
  core: Core,
  call: Call,
  method: DescMethod,
): void {
  const headers = rateLimitOf(core, call, method);
  for (const [name, value] of Object.entries(headers)) header.set(name, value);
}

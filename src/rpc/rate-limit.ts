import { type DescMethod, getOption } from "@bufbuild/protobuf";
import type { Call, Core } from "../core/core.ts";
import { moves_money } from "../gen/payments/v1/options_pb.ts";
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
    return rateLimitHeaders(core.rateLimit(call), movesMoney(method));
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

/** Cached by method, since reading an option parses it. */
function movesMoney(method: DescMethod): boolean {
  let moves = moving.get(method);
  if (moves === undefined) {
    moves = getOption(method, moves_money);
    moving.set(method, moves);
  }
  return moves;
}

const moving = new Map<DescMethod, boolean>();

import type { Interceptor } from "@connectrpc/connect";
import type { Core } from "../core/core.ts";
import { toConnectError } from "./errors.ts";
import { gatedCallOf } from "./gated-call.ts";
import { setRateLimit } from "./rate-limit.ts";

/**
 * Wraps every handler: converts its errors to what callers may see, and sets the headers of a unary
 * response to the rate budget after the call.
 */
export function createInterceptor(core: Core): Interceptor {
  return (next) => async (request) => {
    const { record, call, answerHeader } = gatedCallOf(request.contextValues);
    const outward = (error: unknown) => toConnectError(error, request.signal, record.unknown);
    try {
      const response = await next(request);
      if (!response.stream) return response;
      return { ...response, message: withErrors(response.message, outward) };
    } catch (error) {
      throw outward(error);
    } finally {
      if (call && !request.stream) setRateLimit(answerHeader, core, call, request.method);
    }
  };
}

async function* withErrors<T>(
  messages: AsyncIterable<T>,
  outward: (error: unknown) => Error,
): AsyncGenerator<T, void> {
  try {
    yield* messages;
  } catch (error) {
    throw outward(error);
  }
}

import {
  ConnectError,
  type ConnectRouterOptions,
  createContextKey,
  type HandlerContext,
} from "@connectrpc/connect";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import { type CallRecord, type CallRecordOptions, createCallRecord } from "./call-record.ts";
import { withoutValues } from "./decode-errors.ts";
import { toConnectError, withErrorInfo } from "./errors.ts";

/**
 * Records the calls that Connect serves, those of the services that need no credentials: gives each
 * a request id, and converts the errors of its handler to what callers may see.
 */
export function recordsOpenCalls(
  options: Pick<CallRecordOptions, "log" | "report">,
): Pick<ConnectRouterOptions, "requestGate" | "interceptors"> {
  return {
    async requestGate(context) {
      const requestId = requestIdOf(context.requestHeader.get(requestIdHeader));
      context.responseHeader.set(requestIdHeader, requestId);
      const record = createCallRecord(context, requestId, { ...options, quiet: true });
      context.values.set(key, record);
      onSettled(context, (error) => {
        if (error instanceof ConnectError) {
          withoutValues(error, context.method.input);
          withErrorInfo(error);
        }
        record.settle(error);
      });
    },
    interceptors: [
      (next) => async (request) => {
        const { unknown } = request.contextValues.get(key) as CallRecord;
        const outward = (error: unknown) => toConnectError(error, request.signal, unknown);
        try {
          const response = await next(request);
          if (!response.stream) return response;
          return { ...response, message: withErrors(response.message, outward) };
        } catch (error) {
          throw outward(error);
        }
      },
    ],
  };
}

const key = createContextKey<CallRecord | undefined>(undefined, { description: "call record" });

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

/**
 * Calls back once, when a call is over and before its outcome is written: with undefined after a
 * success, else with the error, which the callback may still change. Unlike interceptors, it also
 * sees requests that could not be read and responses that could not be written.
 *
 * It relies on an untyped detail: every protocol of Connect ends a call by `abort` on the same
 * context object that the request gate receives.
 */
function onSettled(context: HandlerContext, settled: (error: unknown) => void): void {
  const ending = context as HandlerContext & { abort?: (reason?: unknown) => void };
  const abort = ending.abort;
  if (abort === undefined) throw new Error("the handler context cannot be aborted");
  let over = false;
  ending.abort = (reason) => {
    if (!over) {
      over = true;
      settled(reason === completed ? undefined : reason);
    }
    abort.call(ending, reason ?? completed);
  };
}

/** `abort` without a reason would create an exception with a stack for each successful call. */
const completed = new Error("the call is over");

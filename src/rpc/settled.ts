import type { HandlerContext } from "@connectrpc/connect";

/**
 * Calls back once, when a call is over and before its outcome is written: with undefined after a
 * success, else with the error, which the callback may still change. Unlike interceptors, it also
 * sees requests that could not be read and responses that could not be written.
 *
 * It relies on an untyped detail: every protocol of Connect ends a call by `abort` on the same
 * context object that the request gate receives.
 */
export function onSettled(context: HandlerContext, settled: (error: unknown) => void): void {
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

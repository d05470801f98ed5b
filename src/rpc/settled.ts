import type { HandlerContext } from "@connectrpc/connect";

/**
 * Calls back once, when a call is over and before its outcome is written: with undefined after a
 * success, else with what was thrown, which may still be changed then. It sees what interceptors do
 * not: requests that could not be read and answers that could not be written.
 *
 * Every protocol of Connect ends a call by `abort` on the very context that a request gate is given;
 * the type of that context just does not say so.
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

/** Without a reason, each call that ends well would cost an exception with its stack. */
const completed = new Error("the call is over");

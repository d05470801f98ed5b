import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import { errorOfAbort } from "../errors.ts";
import { errorCodeOf, reasonOf } from "./errors.ts";
import type { Log } from "./log.ts";

/** One call in the log: what was called, by whom, how it ended and how long it took. */
export interface CallRecord {
  caller?: string;
  /** Hears of an error that nobody expected, and that the caller is not shown. */
  readonly unknown: (error: unknown) => void;
  /** Writes the record. `error` is undefined after a success. */
  readonly settle: (error: unknown) => void;
}

export interface CallRecordOptions {
  readonly log: Log;
  /** Calls that nobody needs to see while all is well go to the debug level. */
  readonly quiet: boolean;
}

export function createCallRecord(
  context: HandlerContext,
  requestId: string,
  { log, quiet }: CallRecordOptions,
): CallRecord {
  const startedMs = performance.now();
  const method = `${context.service.typeName}/${context.method.name}`;

  const record: CallRecord = {
    unknown(error) {
      log.error({ requestId, method, err: error }, "unexpected error");
    },
    settle(error) {
      const code = outcome(error);
      const entry = {
        method,
        code,
        ...(error instanceof ConnectError ? { reason: reasonOf(error) } : {}),
        durationMs: Math.round((performance.now() - startedMs) * 1000) / 1000,
        requestId,
        caller: record.caller,
        protocol: context.protocolName,
      };
      if (code === "INTERNAL") log.error(entry, "rpc");
      else if (quiet) log.debug(entry, "rpc");
      else log.info(entry, "rpc");
    },
  };

  function outcome(error: unknown): string {
    if (error instanceof ConnectError) return errorCodeOf(error);
    // A unary call may succeed after its caller went away; a stream that does is not a whole one.
    const whole = error === undefined && context.method.methodKind === "unary";
    if (context.signal.aborted && !whole) return outcomeOfAbort(context.signal);
    if (error === undefined) return "OK";
    record.unknown(error);
    return "INTERNAL";
  }

  return record;
}

function outcomeOfAbort(signal: AbortSignal): string {
  const reason: unknown = signal.reason;
  return reason instanceof ConnectError ? errorCodeOf(reason) : errorOfAbort(signal).code;
}

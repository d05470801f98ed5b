import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../auth/caller.ts";
import { type ErrorCode, errorOfAbort } from "../errors.ts";
import type { Report } from "../report.ts";
import { isServerFailure, rpcStatusOf } from "../telemetry/tracing/attributes.ts";
import { activeSpan, type Span } from "../telemetry/tracing/tracing.ts";
import { compressionNotNamed, errorCodeOf, reasonOf, statusCodes } from "./errors.ts";

/** One call in the log: its method, caller, outcome and duration. */
export interface CallRecord {
  caller?: Pick<Caller, "name" | "account">;
  externalId?: string;
  /** Logs an unexpected error, which the caller does not see. */
  readonly unknown: (error: unknown) => void;
  /**
   * Writes the record, its metrics and the span's outcome. `error` is undefined after a success.
   */
  readonly settle: (error: unknown) => void;
}

export interface CallRecordOptions {
  readonly log: Log;
  readonly report: Report;
  /** Logs the call at debug level, unless it ends with an internal error. */
  readonly quiet: boolean;
}

/**
 * Receives the edge's log records; a pino logger implements it. Errors are passed whole as `err`:
 * the logger decides which parts of them may be logged.
 */
export interface Log {
  debug(record: object, message: string): void;
  info(record: object, message: string): void;
  warn(record: object, message: string): void;
  error(record: object, message: string): void;
}

/** The part of a call's context that its record needs. */
export type RecordedCall = Pick<HandlerContext, "service" | "method" | "protocolName" | "signal">;

export function createCallRecord(
  context: RecordedCall,
  requestId: string,
  { log, report, quiet }: CallRecordOptions,
  startedMs = performance.now(),
): CallRecord {
  const span = activeSpan.getStore();
  const service = context.service.typeName;
  const method = `${service}/${context.method.name}`;
  const protocol = context.protocolName;
  report("rpcBegan", { service, method: context.method.name });

  const record: CallRecord = {
    unknown(error) {
      log.error({ requestId, method, err: error }, "unexpected error");
    },
    settle(error) {
      const code = outcome(error);
      const durationMs = performance.now() - startedMs;
      const reason = error instanceof ConnectError ? { reason: reasonOf(error) } : undefined;
      const isCallersMistake = reason?.reason === compressionNotNamed;
      report("rpcEnded", {
        ...{ service, method: context.method.name, protocol, code, durationMs, isCallersMistake },
        unary: context.method.methodKind === "unary",
        traceparent: span?.traceparent,
      });
      if (span) endSpan(span, protocol, code, isCallersMistake);
      const entry = {
        method,
        code,
        ...reason,
        durationMs: Math.round(durationMs * 1000) / 1000,
        requestId,
        caller: record.caller?.name,
        account: record.caller?.account,
        externalId: record.externalId,
        protocol,
      };
      if (code === "INTERNAL" && !isCallersMistake) log.error(entry, "rpc");
      else if (quiet) log.debug(entry, "rpc");
      else log.info(entry, "rpc");
    },
  };

  function outcome(error: unknown): ErrorCode | "OK" {
    if (error instanceof ConnectError) return errorCodeOf(error);
    // A unary call may succeed after its caller has left; a stream that does is not complete.
    const whole = error === undefined && context.method.methodKind === "unary";
    if (context.signal.aborted && !whole) return outcomeOfAbort(context.signal);
    if (error === undefined) return "OK";
    record.unknown(error);
    return "INTERNAL";
  }

  return record;
}

function endSpan(
  span: Span,
  protocol: string,
  code: ErrorCode | "OK",
  isCallersMistake: boolean,
): void {
  const status = rpcStatusOf(protocol, code);
  span.set({
    "rpc.status_code": status,
    "rpc.response.status_code": status,
    ...(protocol === "connect"
      ? { "rpc.connect_rpc.error_code": status }
      : { "rpc.grpc.status_code": code === "OK" ? 0 : statusCodes[code] }),
  });
  if (isServerFailure(code) && !isCallersMistake) span.fail(code);
}

function outcomeOfAbort(signal: AbortSignal): ErrorCode {
  const reason: unknown = signal.reason;
  return reason instanceof ConnectError ? errorCodeOf(reason) : errorOfAbort(signal).code;
}

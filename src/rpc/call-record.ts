import type { DescMethod } from "@bufbuild/protobuf";
import type { Caller } from "../auth/caller.ts";
import { type ErrorCode, errorOfAbort, type GatewayError, reasonOf } from "../errors.ts";
import type { Logger, Report } from "../report.ts";
import { isServerFailure, rpcStatusOf } from "../telemetry/tracing/attributes.ts";
import { activeSpan, type Span } from "../telemetry/tracing/tracing.ts";
import { compressionNotNamed, statusCodes } from "./errors.ts";

/** One call in the log: its method, caller, outcome and duration. */
export interface CallRecord {
  caller?: Pick<Caller, "name" | "account">;
  externalId?: string;
  /** Logs an unexpected error, which the caller does not see. */
  readonly unknown: (error: unknown) => void;
  /**
   * Writes the record, its metrics and the span's outcome. `error` is undefined after a success.
   */
  readonly settle: (error: GatewayError | undefined) => void;
}

/** What the record of a call needs of it. */
export interface RecordedCall {
  readonly method: DescMethod;
  readonly protocolName: string;
  readonly requestId: string;
  readonly signal: AbortSignal;
}

/** @param quiet logs the call at debug level, unless it ends with an internal error */
export function createCallRecord(
  call: RecordedCall,
  { log, report }: { readonly log: Logger; readonly report: Report },
  quiet: boolean,
): CallRecord {
  const startedMs = performance.now();
  const span = activeSpan.getStore();
  const { requestId, protocolName: protocol } = call;
  const service = call.method.parent.typeName;
  const method = `${service}/${call.method.name}`;
  report("rpcBegan", { service, method: call.method.name });

  const record: CallRecord = {
    unknown(error) {
      log.error({ requestId, method, err: error }, "unexpected error");
    },
    settle(error) {
      const code = outcome(error);
      const durationMs = performance.now() - startedMs;
      const reason = error && (reasonOf(error)?.reason ?? error.code);
      const isCallersMistake = reason === compressionNotNamed;
      report("rpcEnded", {
        ...{ service, method: call.method.name, protocol, code, durationMs, isCallersMistake },
        unary: call.method.methodKind === "unary",
        traceparent: span?.traceparent,
      });
      if (span) endSpan(span, protocol, code, isCallersMistake);
      const entry = {
        method,
        code,
        ...(reason !== undefined && { reason }),
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

  function outcome(error: GatewayError | undefined): ErrorCode | "OK" {
    if (error) return error.code;
    // A unary call may succeed after its caller has left; a stream that does is not complete.
    const isWhole = call.method.methodKind === "unary" || !call.signal.aborted;
    return isWhole ? "OK" : errorOfAbort(call.signal).code;
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

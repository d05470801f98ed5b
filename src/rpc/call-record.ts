import type { DescMethod } from "@bufbuild/protobuf";
import type { Call } from "../core/core.ts";
import { type ErrorCode, errorOfAbort, type GatewayError, reasonOf } from "../errors.ts";
import type { Logger, Report } from "../report.ts";
import { isServerFailure, rpcStatusOf } from "../telemetry/tracing/attributes.ts";
import type { Span } from "../telemetry/tracing/tracing.ts";
import { compressionNotNamed, statusCodes } from "./errors.ts";

/** What is recorded of a call. */
export interface RecordedCall {
  readonly method: DescMethod;
  readonly protocolName: string;
  readonly requestId: string;
  readonly signal: AbortSignal;
  readonly startedMs: number;
  readonly span: Span | undefined;
  /** Undefined until the caller is identified. */
  readonly call: Pick<Call, "caller"> | undefined;
  readonly externalId: string | undefined;
}

/**
 * Writes the record of a call that is over, its metrics and the outcome of its span.
 * @param error undefined after a success
 * @param quiet logs the call at debug level, unless it ends with an internal error
 */
export function recordCall(
  call: RecordedCall,
  error: GatewayError | undefined,
  { log, report }: { readonly log: Logger; readonly report: Report },
  quiet: boolean,
): void {
  const { requestId, protocolName: protocol, span, externalId } = call;
  const { name, parent, methodKind } = call.method;
  const service = parent.typeName;
  const unary = methodKind === "unary";
  // A unary call may succeed after its caller has left; a stream that does is not complete.
  const isWhole = unary || !call.signal.aborted;
  const code = error ? error.code : isWhole ? "OK" : errorOfAbort(call.signal).code;
  const durationMs = performance.now() - call.startedMs;
  const reason = error && (reasonOf(error)?.reason ?? error.code);
  const isCallersMistake = reason === compressionNotNamed;
  report("rpcEnded", {
    ...{ service, method: name, protocol, code, durationMs, isCallersMistake, unary },
    traceparent: span?.traceparent,
  });
  if (span) endSpan(span, protocol, code, isCallersMistake);
  const entry = {
    method: `${service}/${name}`,
    code,
    ...(reason !== undefined && { reason }),
    durationMs: Math.round(durationMs * 1000) / 1000,
    requestId,
    caller: call.call?.caller.name,
    account: call.call?.caller.account,
    externalId,
    protocol,
  };
  if (code === "INTERNAL" && !isCallersMistake) log.error(entry, "rpc");
  else if (quiet) log.debug(entry, "rpc");
  else log.info(entry, "rpc");
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

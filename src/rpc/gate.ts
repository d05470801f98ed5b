import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../auth/caller.ts";
import { requireScope } from "../core/authorize.ts";
import type { Call, Core } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import { isUtf8Address } from "../net/address-text.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import type { Report } from "../report.ts";
import { cutIfUnread, type Incoming, incomingOf, outletOf } from "./answer.ts";
import { createCallRecord, type Log } from "./call-record.ts";
import { withoutValues } from "./decode-errors.ts";
import { addUserMessage, toConnectError, withErrorInfo } from "./errors.ts";
import { challenge, type GatedCall, idempotencyOf, setGatedCall, setStart } from "./gated-call.ts";
import { writerOf } from "./pushed-events.ts";
import { setRateLimit } from "./rate-limit.ts";

/** For a read by GET, whose message is part of the URL. */
function notUtf8(): GatewayError {
  return new GatewayError("INVALID_ARGUMENT", "the address must be percent-encoded UTF-8");
}

/** Identifies the caller by a request's headers. @throws GatewayError for a caller it refuses */
export type Identify = (headers: Pick<Headers, "get">) => Promise<Caller>;

export interface GateOptions {
  readonly core: Core;
  readonly identify: Identify;
  readonly log: Log;
  readonly report: Report;
  /** Services that need no credentials: their handlers get no Call. */
  readonly openServices: readonly DescService[];
}

/**
 * Checks each request before its body is read: gives it a request id and a call record, identifies
 * its caller, and refuses one that is unknown or may not call the method.
 */
export function createGate(options: GateOptions): (context: HandlerContext) => Promise<void> {
  const { core, identify, log, report } = options;
  const open = new Set(options.openServices.map((service) => service.typeName));

  return async (context) => {
    const requestId = requestIdOf(context.requestHeader.get(requestIdHeader));
    context.responseHeader.set(requestIdHeader, requestId);
    const quiet = open.has(context.service.typeName);
    const record = createCallRecord(context, requestId, { log, report, quiet });
    const gatedCall: GatedCall = { record, answerHeader: context.responseHeader };
    setGatedCall(context.values, gatedCall);
    onSettled(context, (error) => {
      if (error instanceof ConnectError) {
        withoutValues(error, context.method.input);
        withErrorInfo(error);
        // A stream resumes by itself: its errors are not for the customer.
        if (!quiet && context.method.methodKind === "unary") {
          addUserMessage(error, context.requestHeader.get("accept-language"));
        }
      }
      record.settle(error);
    });
    if (quiet) return;

    try {
      const caller = await identify(context.requestHeader);
      record.caller = caller;
      gatedCall.call = newCall(context, caller, requestId, gatedCall);
      setRateLimit(context.responseHeader, core, gatedCall.call, context.method);
      requireScope(caller, context.method);
      if (!isUtf8Address(incomingOf(context.values)?.url ?? "")) throw notUtf8();
    } catch (error) {
      challenge(error, context.responseHeader);
      throw toConnectError(error, context.signal, record.unknown);
    }
  };
}

function newCall(
  context: HandlerContext,
  caller: Caller,
  requestId: string,
  gatedCall: GatedCall,
): Call {
  const timeoutMs = context.timeoutMs();
  const incoming = incomingOf(context.values);
  const writer = context.method.methodKind === "unary" ? undefined : writerOf(context);
  gatedCall.beat = writer?.beat;
  return {
    caller,
    signal: callSignal(context),
    requestId,
    onAbout: (externalId) => {
      gatedCall.record.externalId = externalId;
    },
    transport: context.protocolName,
    ...(incoming && { onWait: incoming.leave }),
    onFail: (error) => cutIfUnread(outletOf(context.values), error),
    ...(timeoutMs === undefined ? {} : { deadlineMs: Date.now() + timeoutMs }),
    ...idempotencyOf(context.requestHeader.get("idempotency-key"), context.responseHeader),
    ...(incoming && writer
      ? { onOpen: opens(context.responseHeader, incoming), push: writer.push }
      : {}),
  };
}

function opens(header: Headers, incoming: Incoming): NonNullable<Call["onOpen"]> {
  return (from) => {
    setStart(header, from);
    incoming.sendHeaders(header);
  };
}

/**
 * Connect's signal, with abort reasons that the core understands. Unlike Connect's, it does not
 * abort when a unary call ends by itself. For a stream, it also aborts when the connection must
 * end.
 */
function callSignal(context: HandlerContext): AbortSignal {
  const controller = new AbortController();
  const forward = () => controller.abort(abortReason(context.signal.reason));
  if (context.signal.aborted) forward();
  else context.signal.addEventListener("abort", forward, { once: true });
  if (context.method.methodKind === "unary") {
    onSettled(context, () => context.signal.removeEventListener("abort", forward));
    return controller.signal;
  }
  const ending = incomingOf(context.values)?.ending;
  const end = () => controller.abort(ending?.reason);
  if (ending?.aborted) end();
  ending?.addEventListener("abort", end, { once: true });
  onSettled(context, () => ending?.removeEventListener("abort", end));
  return controller.signal;
}

function abortReason(reason: unknown): Error {
  if (reason instanceof ConnectError && reason.code === Code.DeadlineExceeded) {
    return new DOMException("the deadline passed", "TimeoutError");
  }
  if (reason instanceof ConnectError && reason.code === Code.Unavailable) {
    return new GatewayError("UNAVAILABLE", "the gateway is shutting down", { cause: reason });
  }
  return new GatewayError("CANCELLED", "the caller went away", { cause: reason });
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

import { type ContextValues, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Call } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import { replayedHeader } from "../net/replayed-header.ts";
import type { CallRecord } from "./call-record.ts";

/** One request from the gate on: what the gate, the interceptor and the handler share. */
export interface GatedCall {
  readonly record: CallRecord;
  /** Headers of the response, also of an error; to be set before its first byte is written. */
  readonly answerHeader: AnswerHeader;
  /** The call of an identified caller; absent for services that need no credentials. */
  call?: Call;
  /** Of a stream: writes a message without an event, unless the answer's buffer is full. */
  beat?: (() => void) | undefined;
}

export type AnswerHeader = Pick<Headers, "set">;

export function setGatedCall(values: ContextValues, gatedCall: GatedCall): void {
  values.set(key, gatedCall);
}

export function gatedCallOf(values: ContextValues): GatedCall {
  const gatedCall = values.get(key);
  if (!gatedCall) throw new Error("the request has not passed the gate");
  return gatedCall;
}

/** The identified call that a handler serves. @throws Error if no caller was identified */
export function callOf(context: Pick<HandlerContext, "values">): Call {
  const { call } = gatedCallOf(context.values);
  if (!call) throw new Error("nobody was identified for this call");
  return call;
}

/**
 * What a Call has of its `Idempotency-Key` header. The answer gets `idempotent-replayed: true` if
 * it is that of an earlier call with the key.
 */
export function idempotencyOf(
  idempotencyKey: string | null,
  answerHeader: AnswerHeader,
): Pick<Call, "idempotencyKey" | "onReplayed"> {
  if (idempotencyKey === null) return {};
  return { idempotencyKey, onReplayed: () => answerHeader.set(replayedHeader, "true") };
}

/** Asks a caller that was not identified for its credentials. */
export function challenge(error: unknown, answerHeader: AnswerHeader): void {
  const isUnknown = error instanceof GatewayError && error.code === "UNAUTHENTICATED";
  if (isUnknown) answerHeader.set("www-authenticate", "Bearer");
}

/**
 * Adds the cursor of a stream's first position to its headers: a client that is cut off before the
 * first event resumes there.
 */
export function setStart(answerHeader: AnswerHeader, from: string | undefined): void {
  if (from !== undefined) answerHeader.set("x-start-cursor", from);
}

const key = createContextKey<GatedCall | undefined>(undefined, { description: "gated call" });

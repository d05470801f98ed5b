import { type ContextValues, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Call } from "../core/core.ts";
import type { CallRecord } from "./call-record.ts";

/** One request and its answer, from the gate on: what interceptor and handler share. */
export interface GatedCall {
  readonly record: CallRecord;
  /** Headers of the answer, of an error too, until its first byte is written. */
  readonly answerHeader: AnswerHeader;
  /** Whom the handler works for; absent for services that are open to anybody. */
  call?: Call;
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

/** Whom a handler works for. */
export function callOf(context: Pick<HandlerContext, "values">): Call {
  const { call } = gatedCallOf(context.values);
  if (!call) throw new Error("nobody was identified for this call");
  return call;
}

const key = createContextKey<GatedCall | undefined>(undefined, { description: "gated call" });

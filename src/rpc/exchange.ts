import { type ContextValues, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Call } from "../core/core.ts";
import type { CallRecord } from "./call-record.ts";

/** One request and its answer, from the gate on: what interceptor and handler share. */
export interface Exchange {
  readonly record: CallRecord;
  /** Headers of the answer, of an error too, until its first byte is written. */
  readonly answerHeader: AnswerHeader;
  /** Whom the handler works for; absent for services that are open to anybody. */
  call?: Call;
}

export type AnswerHeader = Pick<Headers, "set">;

export function setExchange(values: ContextValues, exchange: Exchange): void {
  values.set(key, exchange);
}

export function exchangeOf(values: ContextValues): Exchange {
  const exchange = values.get(key);
  if (!exchange) throw new Error("the request has not passed the gate");
  return exchange;
}

/** Whom a handler works for. */
export function callOf(context: Pick<HandlerContext, "values">): Call {
  const { call } = exchangeOf(context.values);
  if (!call) throw new Error("nobody was identified for this call");
  return call;
}

const key = createContextKey<Exchange | undefined>(undefined, { description: "exchange" });

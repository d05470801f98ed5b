import { AsyncLocalStorage } from "node:async_hooks";
import type { Span, SpanIds } from "./tracing.ts";

/** The span that the current code works for. */
export const activeSpan = new AsyncLocalStorage<Span>();

/** The ids of the active span, for log records; undefined without one. */
export function activeIds(): SpanIds | undefined {
  return activeSpan.getStore()?.ids;
}

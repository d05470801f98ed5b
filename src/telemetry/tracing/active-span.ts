import { AsyncLocalStorage } from "node:async_hooks";
import type { Span, SpanIds } from "./tracing.ts";

/** The span that the code at hand works for. */
export const activeSpan = new AsyncLocalStorage<Span>();

/** Its ids, for log records. */
export function activeIds(): SpanIds | undefined {
  return activeSpan.getStore()?.ids;
}

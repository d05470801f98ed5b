import { AsyncLocalStorage } from "node:async_hooks";
import type { Attributes, OldNames } from "./attributes.ts";

/**
 * Records the gateway's work as spans of a distributed trace. Without tracing it is `noTracing`,
 * which does nothing and loads nothing.
 */
export interface Tracing {
  /** Begins a span; the caller ends it. */
  start(name: string, options: StartOptions): Span;
}

export interface StartOptions {
  /** `server`: an incoming call; `client`: an outgoing one; `internal`: all else. */
  readonly kind: "server" | "client" | "internal";
  /**
   * The span's parent: given by the headers of the request that began it, a span, or none (`root`).
   * Default: the active span.
   */
  readonly parent?: HeaderOf | Span | "root";
  /** Related spans of other traces, as `traceparent` texts; undefined ones are left out. */
  readonly links?: readonly (string | undefined)[];
  /** A function is called only when tracing is on, so that nothing is built otherwise. */
  readonly attributes?: Attributes | (() => Attributes);
}

/** Returns the text of a request's header by its name in lower case. */
export type HeaderOf = (name: string) => string | undefined;

/** One piece of work. Nothing changes a span after `end`. */
export interface Span {
  /** The span's ids, for log records; absent without tracing. */
  readonly ids?: { readonly trace_id: string; readonly span_id: string };
  /** The span as a `traceparent` text; undefined when it is not sampled. */
  readonly traceparent: string | undefined;
  /** Runs `work` with this span as the active one, also in what it awaits. */
  run<T>(work: () => T): T;
  /** @param old the name by older conventions, used instead if the settings keep their names */
  rename(name: string, old?: { readonly of: OldNames; readonly name: string }): void;
  set(attributes: Attributes): void;
  link(traceparent: string | undefined): void;
  /** Marks the span as failed. `type` is a code or class name of a closed set, never a message. */
  fail(type: string): void;
  /** Headers that carry the trace to the called service: names and values in turn. */
  headers(): readonly string[];
  end(): void;
}

/** Tracing that records spans until `shutdown`. */
export interface RunningTracing extends Tracing {
  /** Exports what is recorded, within `timeoutMs`. Never rejects. */
  shutdown(timeoutMs: number): Promise<void>;
}

/** The span that the current code works for. */
export const activeSpan = new AsyncLocalStorage<Span>();

/** The active span as a `traceparent` text; undefined without one, or if it is not sampled. */
export function activeTrace(): string | undefined {
  return activeSpan.getStore()?.traceparent;
}

const noSpan: Span = {
  traceparent: undefined,
  run: (work) => work(),
  rename() {},
  set() {},
  link() {},
  fail() {},
  headers: () => [],
  end() {},
};

/** Records no spans. */
export const noTracing: RunningTracing = {
  start: () => noSpan,
  async shutdown() {},
};

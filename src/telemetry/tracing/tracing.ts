import type { AttributeName, Attributes, OldNames } from "./attributes.ts";

export type { AttributeName, Attributes };

/**
 * What the rooms say of the work that they do, as spans of a distributed trace. Without tracing it is
 * `noTracing`, which does nothing and loads nothing.
 */
export interface Tracing {
  /** Begins a span; the caller ends it. */
  start(name: string, options: StartOptions): Span;
}

export interface StartOptions {
  /** `server`: a call that came in; `client`: one that goes out; `internal`: all else. */
  readonly kind: "server" | "client" | "internal";
  /**
   * What it is a part of: the headers of the request that began it, a span, or nothing (`root`).
   * Default: the active span.
   */
  readonly parent?: HeaderOf | Span | "root";
  /** Spans elsewhere that it has to do with, as `traceparent` texts; undefined ones are left out. */
  readonly links?: readonly (string | undefined)[];
  /** A function is asked where spans are made: nothing is built for none. */
  readonly attributes?: Attributes | (() => Attributes);
}

/** The text of a request's header, by its name in lower case. */
export type HeaderOf = (name: string) => string | undefined;

/** One piece of work. After `end` nothing changes it. */
export interface Span {
  /** Its ids, for log records; absent when nothing is recorded anywhere. */
  readonly ids?: SpanIds;
  /** Names the span in a `traceparent`; undefined when it is not sampled. */
  readonly traceparent: string | undefined;
  /** Runs `work` with this span as the active one, also in what it awaits. */
  run<T>(work: () => T): T;
  /** @param old what it was called by older conventions, where those are asked for */
  rename(name: string, old?: { readonly of: OldNames; readonly name: string }): void;
  set(attributes: Attributes): void;
  link(traceparent: string | undefined): void;
  /** It failed. `type` is from a closed set, a code or the name of a class: never a message. */
  fail(type: string): void;
  /** What carries the trace over to who is called: names and values of headers in turn. */
  headers(): readonly string[];
  end(): void;
}

export interface SpanIds {
  readonly trace_id: string;
  readonly span_id: string;
}

/** Spans that are recorded, until it is shut down. */
export interface RunningTracing extends Tracing {
  /** Hands over what is recorded, for as long as given at most. Never rejects. */
  shutdown(timeoutMs: number): Promise<void>;
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

/** No spans at all. */
export const noTracing: RunningTracing = {
  start: () => noSpan,
  async shutdown() {},
};

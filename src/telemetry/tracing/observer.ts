/** What tracing reports, for metrics and logs. */
export interface TracingObserver {
  /** What became of ended spans. `failed`: their export failed; `dropped`: the queue was full. */
  onSpans(batch: {
    readonly outcome: "exported" | "failed" | "dropped";
    readonly count: number;
    readonly error?: unknown;
  }): void;
}

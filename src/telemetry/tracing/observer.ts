/** What tracing tells its surroundings, for metrics and logs. */
export interface TracingObserver {
  /**
   * What became of spans that ended: `failed` when they could not be handed over, `dropped` when too
   * many were waiting for it.
   */
  onSpans(batch: {
    readonly outcome: "exported" | "failed" | "dropped";
    readonly count: number;
    readonly error?: unknown;
  }): void;
}

/** One line of what `check` found. */
export interface Finding {
  /** What was looked at, such as `upstream default`. */
  readonly check: string;
  /** `warning`: the gateway would serve, and something is not as it should be in production. */
  readonly verdict: "ok" | "warning" | "failed" | "skipped";
  readonly message: string;
  /** What to do about it. */
  readonly advice?: string;
}

/** Makes the findings of one check. */
export function findings(check: string) {
  const finding =
    (verdict: Finding["verdict"]) =>
    (message: string, advice?: string): Finding => ({
      check,
      verdict,
      message,
      ...(advice !== undefined && { advice }),
    });
  return {
    ok: finding("ok"),
    warning: finding("warning"),
    failed: finding("failed"),
    skipped: finding("skipped"),
  };
}

/** One result of `check`. */
export interface Finding {
  /** What was looked at, such as `upstream default`. */
  readonly check: string;
  /** `warning`: the gateway would serve, but something is not as it should be in production. */
  readonly verdict: "ok" | "warning" | "failed" | "skipped";
  readonly message: string;
  /** What to do about it. */
  readonly advice?: string | undefined;
}

/** Functions that make the findings of one check. */
export function findings(check: string) {
  const finding =
    (verdict: Finding["verdict"]) =>
    (message: string, advice?: string): Finding => ({ check, verdict, message, advice });
  return {
    ok: finding("ok"),
    warning: finding("warning"),
    failed: finding("failed"),
    skipped: finding("skipped"),
  };
}

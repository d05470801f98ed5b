/** Logs refusals that anyone can cause, without letting anyone fill the log. */
export interface RefusalLog {
  /** Adds one refusal of this sort, with `about` as its record. */
  add(sort: string, about: object): void;
}

/**
 * Logs the first refusal of a sort at once, counts those of the following minute, and logs their
 * number at its end.
 */
export function createRefusalLog(
  warn: (record: object, message: string) => void,
  windowMs = 60_000,
): RefusalLog {
  const more = new Map<string, { count: number; last: object }>();

  function watch(sort: string): void {
    more.set(sort, { count: 0, last: {} });
    setTimeout(() => {
      const { count = 0, last } = more.get(sort) ?? {};
      more.delete(sort);
      if (count === 0) return;
      warn(
        { ...last, repeated: count },
        "more callbacks like this one were refused in the last minute",
      );
      watch(sort); // The next record also comes a minute later.
    }, windowMs).unref();
  }

  return {
    add(sort, about) {
      const open = more.get(sort);
      if (open) {
        open.count += 1;
        open.last = about;
        return;
      }
      warn(about, "callback");
      watch(sort);
    },
  };
}

/** Logs refusals that anybody can cause, without letting anybody fill the log. */
export interface RefusalLog {
  /** One more refusal of its sort, which `about` describes. */
  add(sort: string, about: object): void;
}

/**
 * The first refusal of a sort is logged as it is; those of the minute behind it are counted, and
 * their number is logged at its end.
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
      watch(sort); // The next line is a minute away, too.
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

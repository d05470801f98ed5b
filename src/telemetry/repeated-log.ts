import type { WriteRecord } from "../report.ts";

export type RepeatedLog = ReturnType<typeof createRepeatedLog>;

/**
 * Logs what may happen again and again, without letting it fill the log: the first occurrence of a sort
 * at once, and at the end of the following minute the number of those that came meanwhile.
 */
export function createRepeatedLog(warn: WriteRecord) {
  const open = new Map<string, { count: number; last: object }>();

  function watch(sort: string, message: string): void {
    const counted = { count: 0, last: {} };
    open.set(sort, counted);
    setTimeout(() => {
      if (open.get(sort) !== counted) return;
      open.delete(sort);
      const { count, last } = counted;
      if (count === 0) return;
      warn({ ...last, repeated: count }, `${message} (more like this one in the last minute)`);
      watch(sort, message); // The next record also comes a minute later.
    }, 60_000).unref();
  }

  return {
    /** Adds one occurrence of this sort, with `about` as its record. */
    add(sort: string, about: object, message: string): void {
      const counted = open.get(sort);
      if (counted) {
        counted.count += 1;
        counted.last = about;
        return;
      }
      warn(about, message);
      watch(sort, message);
    },
    /** The sort is over: what was counted of it is not logged any more. */
    end: (sort: string) => void open.delete(sort),
  };
}

import type { History } from "./history.ts";

/** What a check found in one history. */
interface Verdict {
  /** How many it judged. */
  readonly tried: number;
  /** What is wrong with some of them. */
  readonly found: readonly string[];
}

export interface Check {
  /** What it judges. */
  readonly of: string;
  judge(history: History): Verdict;
}

/**
 * A check of one kind of thing in a history: `all` finds them, and `wrong` says what is wrong with
 * one of them, if anything is.
 */
export function check<T>(
  of: string,
  all: (history: History) => Iterable<T>,
  wrong: (one: T, history: History) => readonly string[] | string | false,
): Check {
  return {
    of,
    judge(history) {
      const judged = [...all(history)];
      const found = judged.flatMap((one) => wrong(one, history) || []);
      return { tried: judged.length, found };
    },
  };
}

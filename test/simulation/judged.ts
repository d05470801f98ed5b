import type { History } from "./history.ts";

/** What a check found in one history. */
export interface Verdict {
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

/** Judges one after another: `wrong` returns what is wrong with it. */
export function judged<T>(all: Iterable<T>, wrong: (one: T) => readonly string[]): Verdict {
  let tried = 0;
  const found: string[] = [];
  for (const one of all) {
    tried++;
    found.push(...wrong(one));
  }
  return { tried, found };
}

export function groupsOf<T, K>(all: readonly T[], keyOf: (one: T) => K): Map<K, T[]> {
  return Map.groupBy(all, keyOf);
}

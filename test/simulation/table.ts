import { promises, type Verdicts, type Violation } from "./checks.ts";

export function addTried(to: Record<string, number>, more: Verdicts["tried"]): void {
  for (const [check, times] of Object.entries(more)) to[check] = (to[check] ?? 0) + times;
}

/** The seeds of the histories in which each check found something. */
export function seedsOf(
  broken: readonly { readonly seed: number; readonly violations: readonly Violation[] }[],
): Map<string, number[]> {
  const seeds = new Map<string, number[]>();
  for (const { seed, violations } of broken) {
    for (const check of new Set(violations.map(({ check }) => check))) {
      seeds.set(check, [...(seeds.get(check) ?? []), seed]);
    }
  }
  return seeds;
}

/**
 * Each promise, how much of it was tried, and what broke it: the table of docs/promises.md.
 *
 * @param tried how many each check judged
 * @param seeds of the histories in which a check found something
 */
export function tableOf(
  tried: Readonly<Record<string, number>>,
  seeds: ReadonlyMap<string, readonly number[]>,
): string {
  const rows = Object.entries(promises).flatMap(([promise, all]) =>
    Object.entries(all).map(([check, { of }], at) => {
      const broken = seeds.get(check) ?? [];
      const named = broken.length > 20 ? [...broken.slice(0, 20), "…"] : broken;
      const count = (tried[check] ?? 0).toLocaleString("en");
      return [at === 0 ? promise : "", check, of, count, broken.length, named.join(", ")];
    }),
  );
  return [
    ["promise", "check", "tried on", "times", "broken", "seeds"],
    Array(6).fill("---"),
    ...rows,
  ]
    .map((cells) => `| ${cells.join(" | ")} |`.replaceAll("|  |", "| |"))
    .join("\n");
}

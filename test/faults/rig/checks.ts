import type { History } from "./history.ts";

/** What must never be in a history, by name. Each tells what it found; nothing if all is well. */
export const checks: Readonly<Record<string, (history: History) => string[]>> = {
  "acknowledged but not in the log": ({ callbacks, log }) => {
    const kept = new Set(log.map(({ callback }) => callback));
    return callbacks
      .filter(({ id, answers }) => answers.includes(200) && !kept.has(id))
      .map(({ id }) => id);
  },

  "key sent twice": ({ payments, arrivals }) =>
    payments
      .filter(({ key, externalId }) => key !== undefined && (arrivals.get(externalId) ?? 0) > 1)
      .map(({ externalId }) => externalId),

  "charged after a definite failure": ({ payments, arrivals }) =>
    payments
      .filter(
        ({ externalId, answers }) =>
          answers.length > 0 &&
          answers.every((answer) => answer === "refused") &&
          (arrivals.get(externalId) ?? 0) > 0,
      )
      .map(({ externalId, errors = [] }) => [externalId, ...errors].join("; ")),

  "shown and then gone": ({ shown, log }) => {
    const kept = new Set(log.map(({ cursor }) => cursor));
    return shown
      .filter(({ cursor }) => !kept.has(cursor))
      .map(({ watcher, cursor }) => `${watcher}: ${cursor}`);
  },

  "one callback under two cursors": ({ shown, log }) => {
    const cursors = new Map<string, Set<string>>();
    for (const { callback, cursor } of [...log, ...shown]) {
      if (callback === undefined) continue;
      cursors.set(callback, (cursors.get(callback) ?? new Set()).add(cursor));
    }
    return [...cursors].filter(([, all]) => all.size > 1).map(([callback]) => callback);
  },

  "shown twice or out of order": ({ shown }) => {
    const last = new Map<string, string>();
    return shown.flatMap(({ watcher, cursor }) => {
      const before = last.get(watcher);
      last.set(watcher, cursor);
      return before !== undefined && cursor <= before ? [`${watcher}: ${cursor}`] : [];
    });
  },

  "left out": ({ shown, log }) => {
    const cursors = log.map(({ cursor }) => cursor);
    const watchers = new Map<string, string[]>();
    for (const { watcher, cursor } of shown) {
      watchers.set(watcher, [...(watchers.get(watcher) ?? []), cursor]);
    }
    return [...watchers].flatMap(([watcher, seen]) => {
      const first = seen.reduce((a, b) => (a < b ? a : b));
      const known = new Set(seen);
      return cursors
        .filter((cursor) => cursor > first && !known.has(cursor))
        .map((cursor) => `${watcher}: ${cursor}`);
    });
  },

  "valid cursor refused": ({ refusedCursors, log }) => {
    const kept = new Set(log.map(({ cursor }) => cursor));
    return refusedCursors
      .filter(({ cursor }) => kept.has(cursor))
      .map(({ watcher, cursor }) => `${watcher}: ${cursor}`);
  },

  "unknown never settled": ({ unknown }) =>
    unknown.filter(({ settled }) => !settled).map(({ externalId }) => externalId),

  "gateway that does not come back": ({ gateways }) =>
    gateways.filter(({ back }) => !back).map(({ name }) => name),
};

/** Everything that is wrong with a history. */
export function violationsOf(history: History): string[] {
  return Object.entries(checks).flatMap(([name, check]) =>
    check(history).map((found) => `${name}: ${found}`),
  );
}

import { AsyncLocalStorage } from "node:async_hooks";
import type { CallbackRecord, History, WatcherRecord } from "./history.ts";

/** The id of the caller's call for which the current code runs. */
const call = new AsyncLocalStorage<string>();

export function currentCall(): string | undefined {
  return call.getStore();
}

export function inCall<T>(id: string, work: () => T): T {
  return call.run(id, work);
}

/** What is added to while the history happens. */
const growing = [
  ...(["calls", "posts", "requests", "shown", "resumed", "looks", "absences"] as const),
  ...(["apart", "troubles", "elsewhere", "misread", "limits", "lines"] as const),
];
type Lists = { readonly [K in (typeof growing)[number]]: History[K][number][] };

export type Recorder = ReturnType<typeof createRecorder>;

/** Records a history while it happens. */
export function createRecorder(nowMs: () => number) {
  const lists = Object.fromEntries(growing.map((name) => [name, []])) as unknown as Lists;
  const watchers = new Map<string, WatcherRecord>();
  const callbacks = new Map<string, CallbackRecord>();
  return {
    ...lists,
    watchers,
    callback(id: string): CallbackRecord {
      const known = callbacks.get(id) ?? { id, answers: [] };
      callbacks.set(id, known);
      return known;
    },
    line(from: string, to: string, text: string) {
      lists.lines.push({ atMs: nowMs(), from, to, text });
    },
    history: (end: Pick<History, "log" | "ends" | "gateways"> & Partial<History>): History => ({
      ...{ ...lists, endedMs: nowMs(), callbacks: [...callbacks.values()] },
      watchers: [...watchers.values()],
      ...end,
    }),
  };
}

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
type Growing<T> = T extends readonly (infer One)[] ? One[] : never;

/** Records a history while it happens. */
export class Recorder {
  readonly calls: Growing<History["calls"]> = [];
  readonly posts: Growing<History["posts"]> = [];
  readonly requests: Growing<History["requests"]> = [];
  readonly shown: Growing<History["shown"]> = [];
  readonly watchers = new Map<string, WatcherRecord>();
  readonly resumed: Growing<History["resumed"]> = [];
  readonly looks: Growing<History["looks"]> = [];
  readonly absences: Growing<History["absences"]> = [];
  readonly apart: Growing<History["apart"]> = [];
  readonly troubles: Growing<History["troubles"]> = [];
  readonly elsewhere: Growing<History["elsewhere"]> = [];
  readonly misread: Growing<History["misread"]> = [];
  readonly limits: Growing<History["limits"]> = [];
  readonly lines: Growing<History["lines"]> = [];
  readonly #callbacks = new Map<string, CallbackRecord>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  callback(id: string): CallbackRecord {
    const known = this.#callbacks.get(id) ?? { id, answers: [] };
    this.#callbacks.set(id, known);
    return known;
  }

  line(from: string, to: string, text: string): void {
    this.lines.push({ atMs: this.#nowMs(), from, to, text });
  }

  history(end: Pick<History, "log" | "ends" | "gateways"> & Partial<History>): History {
    return {
      ...this,
      endedMs: this.#nowMs(),
      callbacks: [...this.#callbacks.values()],
      watchers: [...this.watchers.values()],
      ...end,
    };
  }
}

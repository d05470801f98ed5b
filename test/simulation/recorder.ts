import { AsyncLocalStorage } from "node:async_hooks";
import type {
  CallbackRecord,
  CallRecord,
  ElsewhereRecord,
  History,
  Line,
  LookRecord,
  MisreadRecord,
  PostRecord,
  RequestRecord,
  ResumeRecord,
  ShownRecord,
  WatcherRecord,
} from "./history.ts";

/** The id of the caller's call for which the current code runs. */
const call = new AsyncLocalStorage<string>();

export function currentCall(): string | undefined {
  return call.getStore();
}

export function inCall<T>(id: string, work: () => T): T {
  return call.run(id, work);
}

/** Records a history while it happens. */
export class Recorder {
  readonly calls: CallRecord[] = [];
  readonly posts: PostRecord[] = [];
  readonly requests: RequestRecord[] = [];
  readonly shown: ShownRecord[] = [];
  readonly watchers = new Map<string, WatcherRecord>();
  readonly resumed: ResumeRecord[] = [];
  readonly looks: LookRecord[] = [];
  readonly absences: { replica: string; fromMs: number; toMs: number }[] = [];
  readonly apart: { fromMs: number; toMs: number; gateways: number }[] = [];
  readonly troubles: { fromMs: number; toMs: number }[] = [];
  readonly elsewhere: ElsewhereRecord[] = [];
  readonly misread: MisreadRecord[] = [];
  readonly limits: { account: string; fromMs: number; perSecond: number; toldMs?: number }[] = [];
  readonly lines: Line[] = [];
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

  history(end: Pick<History, "log" | "ends" | "gateways">): History {
    return {
      endedMs: this.#nowMs(),
      ...{ calls: this.calls, posts: this.posts, requests: this.requests, shown: this.shown },
      callbacks: [...this.#callbacks.values()],
      watchers: [...this.watchers.values()],
      ...{ resumed: this.resumed, looks: this.looks, absences: this.absences },
      ...{ troubles: this.troubles, elsewhere: this.elsewhere, misread: this.misread },
      ...{ limits: this.limits, apart: this.apart, lines: this.lines },
      ...end,
    };
  }
}

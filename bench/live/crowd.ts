import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { onCore, own, stop } from "../processes.ts";
import type { Opening, Order, Report, Step, Word } from "./watchers.ts";

export interface CrowdOptions {
  /** The URL of the listener. */
  readonly url: string;
  readonly sockets: number;
  readonly streams?: number;
  readonly steps: readonly Step[];
  readonly resumes?: boolean;
  /** Most sockets to open at the same time. Default: 256. */
  readonly atOnce?: number;
  readonly core: number | undefined;
}

/** Most sockets in one process; the system may allow it only 20,000 open files. */
const socketsPerProcess = 10_000;
const file = new URL("./watchers.ts", import.meta.url).pathname;
let crowds = 0;

/** Watchers in child processes. */
export class Crowd {
  readonly #children: readonly ChildProcess[];
  readonly #delivered = new Map<
    number,
    { left: number; atUs: number; resolve(us: number): void }
  >();
  readonly #failed = Promise.withResolvers<never>();

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children;
    this.#failed.promise.catch(() => {});
    for (const child of children) {
      child.on("message", (word: Word) => this.#hear(word));
      child.on("exit", () => this.#failed.reject(new Error("a process of watchers has ended")));
    }
  }

  /** Resolves when all watches are open. */
  static async open(options: CrowdOptions): Promise<Crowd> {
    const { url, sockets, streams = 1, steps, resumes = false, atOnce = 256, core } = options;
    const children: ChildProcess[] = [];
    const openings: Opening[] = [];
    const port = Number(new URL(url).port);
    for (let first = 0; first < sockets; first += socketsPerProcess) {
      const [command, ...before] = onCore(core, process.execPath);
      const stdio = ["ignore", "inherit", "inherit", "ipc"] as const;
      children.push(
        own(spawn(command, [...before, file], { stdio: [...stdio], serialization: "advanced" })),
      );
      // A local address has only some 28,000 ports, so each process gets its own address.
      crowds += 1;
      const address = `127.0.0.${2 + (crowds % 250)}`;
      const share = Math.min(socketsPerProcess, sockets - first);
      openings.push({ port, first, sockets: share, streams, address, atOnce, steps, resumes });
    }
    const crowd = new Crowd(children);
    // One process after another, so that no more than `atOnce` sockets open at the same time.
    for (const [i, opening] of openings.entries()) {
      const child = children[i] as ChildProcess;
      const opened = crowd.#word(child, "open");
      order(child, { is: "open", opening });
      await opened;
    }
    return crowd;
  }

  /** Resolves with the time at which the last watcher received the event, in microseconds. */
  delivered(sequence: number): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#delivered.set(sequence, { left: this.#children.length, atUs: 0, resolve });
    return Promise.race([promise, this.#failed.promise]);
  }

  /** Figures since the last report. */
  async report(): Promise<Report> {
    const reports = await Promise.all(
      this.#children.map(async (child) => {
        const word = this.#word(child, "report");
        order(child, { is: "report" });
        return (await word) as Report;
      }),
    );
    const sum = (of: (report: Report) => number) => reports.reduce((n, one) => n + of(one), 0);
    const all = (of: (report: Report) => Float64Array) =>
      Float64Array.from(reports.flatMap((one) => [...of(one)])).sort();
    return {
      is: "report",
      latencies: all(({ latencies }) => latencies),
      resumedAtUs: all(({ resumedAtUs }) => resumedAtUs),
      cut: sum(({ cut }) => cut),
      refused: sum(({ refused }) => refused),
      had: reports.flatMap(({ had }) => had),
    };
  }

  /** Sets the URL to which cut watchers reconnect. */
  moveTo(url: string): void {
    for (const child of this.#children)
      order(child, { is: "move", port: Number(new URL(url).port) });
  }

  async close(): Promise<void> {
    for (const child of this.#children) {
      if (!child.connected) continue;
      const ended = once(child, "exit");
      order(child, { is: "close" });
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 5_000).unref())]);
    }
    await Promise.all(this.#children.map(stop));
  }

  #word(child: ChildProcess, is: Word["is"]): Promise<Word> {
    const { promise, resolve } = Promise.withResolvers<Word>();
    const listener = (word: Word) => {
      if (word.is !== is) return;
      child.off("message", listener);
      resolve(word);
    };
    child.on("message", listener);
    return Promise.race([promise, this.#failed.promise]);
  }

  #hear(word: Word): void {
    if (word.is === "broken") this.#failed.reject(new Error(word.why));
    if (word.is !== "delivered") return;
    const waiting = this.#delivered.get(word.sequence);
    if (!waiting) return;
    waiting.left -= 1;
    waiting.atUs = Math.max(waiting.atUs, word.atUs);
    if (waiting.left > 0) return;
    this.#delivered.delete(word.sequence);
    waiting.resolve(waiting.atUs);
  }
}

function order(child: ChildProcess, order: Order): void {
  child.send(order);
}

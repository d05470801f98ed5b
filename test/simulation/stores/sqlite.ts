import { EventEmitter } from "node:events";
import { DatabaseSync } from "node:sqlite";
import type { Worker } from "node:worker_threads";
import { dueIndex } from "../../../src/ledger/calls.ts";
import { LedgerWithFallback } from "../../../src/ledger/fallback.ts";
import type { Ledger } from "../../../src/ledger/ledger.ts";
import type { RowPage } from "../../../src/stores/kernel.ts";
import { createSqliteKernel } from "../../../src/stores/sqlite/kernel.ts";
import { open as openKernel } from "../../../src/stores/sqlite/operations.ts";
import { migrate } from "../../../src/stores/sqlite/schema.ts";
import { openStoreThread } from "../../../src/stores/sqlite/store-thread.ts";
import type { Operations, Reply, Request } from "../../../src/stores/sqlite/worker.ts";
import { createWorker } from "../../../src/stores/sqlite/worker.ts";
import { overridden } from "../../overridden.ts";
import { accounts, keyringOf } from "../merchant.ts";
import { asNobody, type Process } from "../scheduler.ts";
import { localBuckets } from "./memory.ts";
import type { ReplicaStores, StoreOptions, Stores } from "./stores.ts";

const retentionMs = 7 * 86_400_000;
/** How long an operating system may keep what is not synchronised, in milliseconds. */
const cachedMs = 5_000;

/**
 * The embedded store of one process, which may die and open it again. The store's code and its
 * batches run on a real database in memory; its thread and its disk are simulated.
 */
export function createSqliteStores(options: StoreOptions): Stores {
  const { firstLookMs, giveUpMs, scheduler } = options;
  const disk = idle.pop() ?? new Disk();
  disk.lies = options.flushesAfterMs;
  const running = new Set<string>();
  let thread: SimulatedThread | undefined;
  // A real restart takes longer than the budget's second, a simulated one may not: the budget stays.
  const bucketOf = localBuckets(options);
  return {
    async open(process): Promise<ReplicaStores> {
      disk.open();
      const opened = new SimulatedThread(disk, process, options);
      thread = opened;
      const store = await openStoreThread({
        directory: "",
        startWorker({ synchronous }) {
          if (synchronous === "OFF") disk.lies ??= cachedMs;
          return opened as unknown as Worker;
        },
      });
      const ledger = new LedgerWithFallback({
        ...{ retentionMs, firstLookMs, giveUpMs, keyringOf },
        kernel: createSqliteKernel({ thread: store, retentionMs }),
        ...{ isAway: () => true, readsGoOn: true, answerMs: 10_000 },
      });
      await Promise.all(accounts.map((account) => ledger.endLeases(account)));
      return { ledger: observed(ledger, running), bucketOf };
    },
    async isQuiet() {
      if (running.size > 0 || thread?.isWriting) return false;
      return disk.membersOf(dueIndex) === 0;
    },
    async log(account) {
      const of = { name: account, epoch: "00000000", retentionMs };
      return (disk.read("page", of, 0, undefined, undefined, 100_000) as RowPage).rows;
    },
    powerOff: () => disk.powerOff(scheduler.nowMs),
    async close() {
      disk.empty();
      idle.push(disk);
    },
  };
}

/** Empty databases for reuse: creating the tables takes longer than many a history. */
const idle: Disk[] = [];

/** Keeps the ids of the calls that run in `running`, for all processes. */
function observed(ledger: Ledger, running: Set<string>): Ledger {
  return overridden(ledger, {
    async begin(...args) {
      const begun = await ledger.begin(...args);
      if (begun.kind === "started") running.add(begun.intent.id);
      return begun;
    },
    end(...args) {
      running.delete(args[1].id);
      return ledger.end(...args);
    },
  });
}

/** How a full disk fails a batch. */
type Refusal =
  /** The transaction cannot be written. */
  | "commit"
  /** One of its requests fails. */
  | "request"
  /** One of its requests fails, and SQLite rolls back the whole transaction. */
  | "transaction";

/** A real database, written in batches as the store's thread does. */
class Disk {
  /** How long it keeps to itself what it claims to have written; undefined: it does not lie. */
  lies: number | undefined;
  readonly #database = new DatabaseSync(":memory:");
  readonly #work: ReturnType<typeof createWorker>;
  readonly #kernel: Operations;
  readonly #emptying: string;
  /** The refusal of the batch that is written, and which of its writes fails. */
  #refusal: { readonly how: Refusal; readonly of: Request | undefined } | undefined;
  /** What a disk that lies has been given, and when. */
  #given: { readonly atMs: number; readonly batch: readonly Request[] }[] = [];

  constructor() {
    const database = this.#database;
    migrate(database);
    this.#kernel = openKernel(database);
    const failing = overridden(database, {
      exec: (text) => {
        if (text === "COMMIT" && this.#refusal?.how === "commit") throw diskFull();
        database.exec(text);
      },
    });
    this.#work = createWorker(failing, this.#mayFail(this.#kernel));
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    this.#emptying = tables.map(({ name }) => `DELETE FROM ${name};`).join("\n");
  }

  /** A process opens it, which remembers nothing. */
  open(): void {
    this.#kernel.undone?.();
  }

  /** Its process ends: a transaction that is open is rolled back. */
  leave(): void {
    if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
    this.#kernel.undone?.();
  }

  /** Deletes all rows. */
  empty(): void {
    this.leave();
    this.#given = [];
    this.#database.exec(`BEGIN;\n${this.#emptying}\nCOMMIT`);
    this.#kernel.undone?.();
  }

  read(operation: string, ...args: readonly unknown[]): unknown {
    return this.#kernel.reads[operation]?.(...args);
  }

  /** How many members an index has, in all accounts. */
  membersOf(index: string): unknown {
    return this.#database.prepare("SELECT count(*) AS n FROM members WHERE name = ?").get(index)?.n;
  }

  isWrite({ operation }: Request): boolean {
    return this.#kernel.writes[operation] !== undefined;
  }

  write(atMs: number, batch: readonly Request[], how?: Refusal, at = 0): Reply[] {
    this.#refusal = how && { how, of: batch.filter((request) => this.isWrite(request))[at] };
    if (this.lies !== undefined && !how) this.#given.push({ atMs, batch: copyOf(batch) });
    const replies = this.#work(batch);
    this.#refusal = undefined;
    return replies;
  }

  /** Loses what a disk that lies has not written yet. */
  powerOff(nowMs: number): void {
    if (this.lies === undefined) return;
    const { lies } = this;
    const kept = this.#given.filter(({ atMs }) => atMs + lies <= nowMs);
    this.empty();
    for (const { atMs, batch } of kept) this.write(atMs, batch);
  }

  #mayFail(operations: Operations): Operations {
    const failing = Object.entries(operations.writes).map(([name, write]) => [
      name,
      (...args: unknown[]) => {
        const result: unknown = write(...args);
        const { how = "commit", of } = this.#refusal ?? {};
        const isRefused = name === of?.operation && args.every((arg, at) => arg === of.args[at]);
        if (how === "commit" || !isRefused) return result;
        if (how === "transaction") this.#database.exec("ROLLBACK");
        throw diskFull();
      },
    ]);
    return { ...operations, writes: Object.fromEntries(failing) };
  }
}

function diskFull(): Error {
  return new Error("database or disk is full");
}

/** Copies like `structuredClone`, but plain values several times faster. */
function copyOf<T>(value: T): T {
  if (typeof value === "function" || typeof value === "symbol") return structuredClone(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyOf) as T;
  if (value instanceof Uint8Array) return new Uint8Array(value) as T;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return structuredClone(value);
  const copy: Record<string, unknown> = {};
  for (const key in value) copy[key] = copyOf(value[key]);
  return copy as T;
}

/**
 * The store's thread: a batch holds the requests that arrived while the last one was written. When
 * its process dies, the batch under way is on the disk whole or not at all, and those that wait are
 * gone. Troubles of the network are those of its disk: it is full, slow, or stands still.
 */
class SimulatedThread extends EventEmitter {
  readonly #disk: Disk;
  readonly #process: Process;
  readonly #options: StoreOptions;
  #waiting: Request[] = [];
  #underWay:
    | { readonly batch: readonly Request[]; readonly refusal: Refusal | undefined }
    | undefined;
  #isAwake = false;

  constructor(disk: Disk, process: Process, options: StoreOptions) {
    super();
    this.#disk = disk;
    this.#process = process;
    this.#options = options;
    process.onDeath(() => {
      const { scheduler } = options;
      disk.leave();
      const { batch, refusal } = this.#underWay ?? {};
      if (batch && !refusal && scheduler.random.chance(0.5)) disk.write(scheduler.nowMs, batch);
      this.#waiting = [];
      this.#underWay = undefined;
      // Ends what the dead process waits for: it may hold turns of pages, which all processes share.
      this.emit("exit");
    });
    this.#tell([], options.network.latencyMs());
  }

  /** Whether writes wait, even if their callers have left. */
  get isWriting(): boolean {
    const all = [...this.#waiting, ...(this.#underWay?.batch ?? [])];
    return all.some((request) => this.#disk.isWrite(request));
  }

  postMessage(requests: readonly Request[]): void {
    if (this.#process.isDead) return;
    // Arguments and results are copied between threads.
    this.#waiting.push(...copyOf(requests));
    this.#wakeUp();
  }

  ref(): void {}
  unref(): void {}

  #wakeUp(): void {
    const { scheduler } = this.#options;
    if (this.#isAwake) return;
    this.#isAwake = true;
    scheduler.after(scheduler.random.between(0, 0.1), () => this.#begin());
  }

  #begin(): void {
    const { scheduler, network, recorder } = this.#options;
    const batch = this.#waiting.splice(0);
    if (batch.length === 0) {
      this.#isAwake = false;
      return;
    }
    const trouble = network.troubleOf(this.#process);
    if (trouble) {
      const names = batch.map(({ operation }) => operation).join(", ");
      recorder.line(this.#process.name, "store", `${names} (${trouble})`);
    }
    const writes = batch.filter((request) => this.#disk.isWrite(request)).length;
    const isFull = refusals.has(trouble ?? "") && writes > 0;
    const refusal = isFull
      ? scheduler.random.pick(["commit", "request", "transaction"] as const)
      : undefined;
    this.#underWay = { batch, refusal };
    const slowMs = slowness.has(trouble ?? "") ? scheduler.random.between(50, 6_000) : 0;
    const tookMs = network.latencyMs() + slowMs + network.stalledMs(this.#process);
    scheduler.after(tookMs, () => {
      if (this.#process.isDead) return;
      this.#underWay = undefined;
      const at = scheduler.random.whole(0, Math.max(writes - 1, 0));
      const replies = asNobody(() => this.#disk.write(scheduler.nowMs, batch, refusal, at));
      this.#tell(copyOf(replies));
      this.#begin();
    });
  }

  #tell(message: Reply[], inMs = 0): void {
    const { scheduler } = this.#options;
    scheduler.after(inMs, () => this.emit("message", message), this.#process);
  }
}

/** Troubles of the network, applied to a disk: it refuses writes, or is slow. */
const refusals: ReadonlySet<string> = new Set(["losesRequests", "cuts"]);
const slowness: ReadonlySet<string> = new Set(["losesAnswers", "late"]);

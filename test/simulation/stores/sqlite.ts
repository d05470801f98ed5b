import { DatabaseSync, type StatementSync } from "node:sqlite";
import { GatewayError } from "../../../src/errors.ts";
import type { Event } from "../../../src/gen/payments/v1/event_pb.ts";
import { dueIndex } from "../../../src/ledger/calls.ts";
import { CallsWithFallback } from "../../../src/ledger/fallback.ts";
import type { IntentStore } from "../../../src/ledger/intents.ts";
import { createSqliteLedger } from "../../../src/ledger/sqlite.ts";
import { open as openKernel } from "../../../src/stores/sqlite/operations.ts";
import type { RoomOperations } from "../../../src/stores/sqlite/room.ts";
import { migrate } from "../../../src/stores/sqlite/schema.ts";
import type { StoreThread } from "../../../src/stores/sqlite/store-thread.ts";
import { accounts, keyringOf } from "../merchant.ts";
import { asNobody, type Process } from "../scheduler.ts";
import { localBuckets } from "./memory.ts";
import type { ReplicaStores, StoreOptions, Stores } from "./stores.ts";

const retentionMs = 7 * 86_400_000;

/**
 * The embedded store of one process, which may die and open it again. Its operations run on a real
 * database; the store's thread is simulated: it may be slow or stall, or its disk may refuse
 * writes.
 */
export function createSqliteStores(options: StoreOptions): Stores {
  const disk = idle.pop() ?? new Disk();
  const running = new Set<string>();
  const queued = new Set<symbol>();
  // A real restart takes longer than the budget's second, a simulated one may not: the budget stays.
  const bucketOf = localBuckets(options);
  return {
    async open(process): Promise<ReplicaStores> {
      const thread = threadOf(disk, process, options, queued);
      const { firstLookMs, giveUpMs } = options;
      const given = { retentionMs, firstLookMs, giveUpMs };
      const ledger = createSqliteLedger({ ...given, thread, keyringOf });
      const intents = new CallsWithFallback({
        ...{ ...given, ledger, isAway: () => true, readsGoOn: true, answerMs: 10_000 },
      });
      return {
        log: ledger,
        intents: observed(intents, running),
        bucketOf,
      };
    },
    async isQuiet() {
      if (running.size > 0 || queued.size > 0) return false;
      return accounts.every((account) => disk.obey("kernel", "count", [account, dueIndex]) === 0);
    },
    async log(account): Promise<Event[]> {
      const thread: StoreThread = {
        async run<T, M>(
          room: string,
          operation: string,
          args: readonly unknown[],
          map?: (result: T) => M,
        ) {
          const result = disk.obey(room, operation, args) as T;
          return map ? map(result) : (result as unknown as M);
        },
        trouble: undefined,
        async close() {},
      };
      const log = createSqliteLedger({ thread, retentionMs, keyringOf });
      const { signal } = new AbortController();
      const end = await log.cursorBefore(account, 0);
      const events: Event[] = [];
      if (end === (await log.cursorBefore(account, 1))) return events;
      for await (const event of await log.read(account, { kinds: [] }, "earliest", { signal })) {
        events.push(event);
        if (event.cursor >= end) break;
      }
      await log.close();
      return events;
    },
    async close() {
      disk.empty();
      idle.push(disk);
    },
  };
}

/** Empty databases for reuse: creating the tables takes longer than many a history. */
const idle: Disk[] = [];

/** Keeps the ids of the calls that run in `running`, for all processes. */
function observed(intents: IntentStore, running: Set<string>): IntentStore {
  return new Proxy(intents, {
    get(target, name) {
      if (name === "begin") {
        return async (...args: Parameters<IntentStore["begin"]>) => {
          const begun = await target.begin(...args);
          if (begun.kind === "started") running.add(begun.intent.id);
          return begun;
        };
      }
      if (name === "end") {
        return (...args: Parameters<IntentStore["end"]>) => {
          running.delete(args[1].id);
          return target.end(...args);
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Runs operations like the store's thread, each write in a transaction of its own. */
class Disk {
  readonly #database = new DatabaseSync(":memory:");
  readonly #rooms: Readonly<Record<string, RoomOperations>>;
  readonly #emptying: string;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;

  constructor() {
    const database = this.#database;
    migrate(database);
    this.#begin = database.prepare("BEGIN IMMEDIATE");
    this.#commit = database.prepare("COMMIT");
    this.#rooms = { kernel: openKernel(database) };
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    // One of the tables is sqlite_sequence, with the counters of AUTOINCREMENT.
    this.#emptying = tables.map(({ name }) => `DELETE FROM ${name};`).join("\n");
  }

  /** Deletes all rows and counters. */
  empty(): void {
    this.#database.exec(`BEGIN;\n${this.#emptying}\nCOMMIT`);
  }

  isWrite(room: string, operation: string): boolean {
    return this.#rooms[room]?.writes[operation] !== undefined;
  }

  obey(room: string, operation: string, args: readonly unknown[]): unknown {
    const { reads = {}, writes = {} } = this.#rooms[room] ?? {};
    const run = writes[operation] ?? reads[operation];
    if (!run) throw new Error(`no such operation: ${room}.${operation}`);
    // Arguments and results are copied between threads.
    const copies = copyOf(args);
    if (!writes[operation]) return copyOf(run(...copies));
    this.#begin.run();
    try {
      const result = copyOf(run(...copies));
      this.#commit.run();
      return result;
    } catch (error) {
      this.#database.exec("ROLLBACK");
      throw error;
    }
  }
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

/** Longest that the thread may take to answer, in milliseconds. */
const answerMs = 5_000;

function threadOf(
  disk: Disk,
  process: Process,
  { scheduler, network, recorder }: StoreOptions,
  // Writes that are not done yet, even if their caller has left.
  queued: Set<symbol>,
): StoreThread {
  // One thread: operations run in the order in which they arrive.
  let lastMs = 0;
  // Of the operations that are pending when the process dies, the first ones are done, up to a
  // random one.
  let isDoneAtDeath = true;
  return {
    run<T, M>(
      room: string,
      operation: string,
      args: readonly unknown[],
      map?: (result: T) => M,
    ): Promise<M> {
      return new Promise((resolve, reject) => {
        const fail = (why: string) => reject(storeFailed(why));
        let isObeyed = false;
        const place = Symbol(operation);
        const obey = () => {
          isObeyed = true;
          queued.delete(place);
          return asNobody(() => disk.obey(room, operation, args)) as T;
        };
        if (process.isDead) return fail("the process is dead");
        const stopDeath = process.onDeath(() => {
          if (!isObeyed) isDoneAtDeath &&= scheduler.random.chance(0.5);
          if (!isObeyed && isDoneAtDeath && !refuses) obey();
          queued.delete(place);
          fail("the process died");
        });
        const stopTimeout = scheduler.after(answerMs, () => fail("no answer"), process);
        const trouble = network.troubleOf(process);
        if (trouble) recorder.line(process.name, "store", `${room} ${operation} (${trouble})`);
        const refuses = disk.isWrite(room, operation) && refusals.has(trouble ?? "");
        const slowMs = slowness.has(trouble ?? "") ? scheduler.random.between(50, 6_000) : 0;
        const tookMs = network.latencyMs() + slowMs + network.stalledMs(process);
        lastMs = Math.max(lastMs, scheduler.nowMs + tookMs);
        if (disk.isWrite(room, operation)) queued.add(place);
        scheduler.after(lastMs - scheduler.nowMs, () => {
          queued.delete(place);
          if (process.isDead) return;
          let outcome: () => void;
          try {
            if (refuses) throw new Error("database or disk is full");
            const result = obey();
            outcome = () => resolve(map ? map(result) : (result as unknown as M));
          } catch (error) {
            outcome = () => fail((error as Error).message);
          }
          process.run(() => {
            stopTimeout();
            stopDeath();
            outcome();
          });
        });
      });
    },
    trouble: undefined,
    async close() {},
  };
}

/** Troubles of the network, applied to a disk: it refuses writes, or is slow. */
const refusals: ReadonlySet<string> = new Set(["losesRequests", "cuts"]);
const slowness: ReadonlySet<string> = new Set(["losesAnswers", "late"]);

function storeFailed(reason: string): GatewayError {
  return new GatewayError("UNAVAILABLE", "the store is out of reach", {
    ...{ reason: "STORE_UNAVAILABLE", retryAfterMs: 1_000, cause: new Error(reason) },
  });
}

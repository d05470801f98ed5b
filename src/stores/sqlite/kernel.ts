import { assertOf, type Cursor, newEpoch, placeIn, placeOf } from "../cursor.ts";
import type {
  AccountKernel,
  Commit,
  Committed,
  Kernel,
  Listener,
  RangeOptions,
  Read,
  Row,
  RowPage,
  Scored,
} from "../kernel.ts";
import type { StoreThread } from "./store-thread.ts";

export interface SqliteKernelOptions {
  /** Stays open when the store is closed. */
  readonly thread: StoreThread;
  /** How long events are kept, in milliseconds. */
  readonly retentionMs: number;
  /** Wall clock in milliseconds. Default: `Date.now`. */
  readonly now?: () => number;
}

/** How often expired rows are deleted, in milliseconds; reads ignore them before that. */
const sweepMs = 60_000;

/**
 * The embedded store of this process. A commit is on the disk before it is acknowledged. While the
 * disk takes no writes, `commit` throws UNAVAILABLE and reads go on.
 */
export function createSqliteKernel(options: SqliteKernelOptions): Kernel {
  const { thread, retentionMs, now = Date.now } = options;
  const accounts = new Map<string, SqliteAccount>();
  let closed: Error | undefined;
  const sweeper = setInterval(() => void sweep(), sweepMs).unref();

  async function sweep(): Promise<void> {
    try {
      // In small portions, so that writes run in between.
      while (!closed && (await thread.run("sweep", [now(), retentionMs])));
    } catch {
      // The store's thread reports its failures itself. The next interval tries again.
    }
  }

  return {
    durable: true,
    account(name) {
      if (closed) throw closed;
      let account = accounts.get(name);
      if (!account) {
        account = new SqliteAccount(options, name);
        accounts.set(name, account);
      }
      return account;
    },
    async close(error) {
      closed = error;
      clearInterval(sweeper);
      for (const account of accounts.values()) account.end(error);
    },
  };
}

/** One account's part of the store. Only this process writes to it. */
class SqliteAccount implements AccountKernel {
  readonly #options: SqliteKernelOptions;
  readonly #name: string;
  readonly #listeners = new Set<Listener>();
  /** In memory, since there is one process: after a restart no other holder competes. */
  readonly #leases = new Map<string, { holder: string; untilMs: number }>();
  #made: Promise<string> | undefined;

  constructor(options: SqliteKernelOptions, name: string) {
    this.#options = options;
    this.#name = name;
  }

  readonly hasClock = true;

  nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }

  async read(keys: readonly string[]): Promise<Read> {
    return this.#run("read", [this.#oldest(), keys, this.nowMs()]);
  }

  async commit(commit: Commit): Promise<Committed> {
    return this.#run("commit", [commit, this.nowMs()], (done: Committed) => {
      if (done.kind !== "committed") return done;
      // In the order of the log, since results come in the order of the commits.
      for (const [n, { bytes }] of commit.events.entries()) {
        const cursor = done.cursors[n] ?? "";
        for (const listener of this.#listeners) listener.row({ cursor, bytes });
      }
      return done;
    });
  }

  async page(
    topic: string | undefined,
    after: Cursor | undefined,
    limit: number,
  ): Promise<RowPage> {
    return this.#run("page", [this.#oldest(), topic, after && placeIn(after), limit]);
  }

  async newest(topic: string | undefined, limit: number, before?: Cursor): Promise<readonly Row[]> {
    if (before !== undefined) assertOf(before, await this.#epoch());
    return this.#run("newest", [this.#oldest(), topic, limit, before && placeIn(before)]);
  }

  async watch(listener: Listener): Promise<() => void> {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async range(indexes: readonly string[], options: RangeOptions): Promise<Scored[]> {
    return this.#run("range", [indexes, options]);
  }

  async count(index: string): Promise<number> {
    return this.#run("count", [index]);
  }

  async drop(index: string, members: readonly string[]): Promise<void> {
    await this.#run("drop", [index, members]);
  }

  async lease(name: string, holder: string, ttlMs: number): Promise<boolean> {
    const nowMs = this.nowMs();
    const lease = this.#leases.get(name);
    if (lease && lease.holder !== holder && lease.untilMs > nowMs) return false;
    this.#leases.set(name, { holder, untilMs: nowMs + ttlMs });
    return true;
  }

  end(error: Error): void {
    for (const listener of [...this.#listeners]) listener.fail(error);
    this.#listeners.clear();
  }

  /** The epoch of the account's log. Adds the account to the store at its first use. */
  #epoch(): Promise<string> {
    this.#made ??= this.#options.thread
      .run<string>("account", [this.#name, newEpoch()])
      .catch((error: unknown) => {
        this.#made = undefined;
        throw error;
      });
    return this.#made;
  }

  async #run<T, M = T>(
    operation: string,
    args: readonly unknown[],
    map?: (row: T) => M,
  ): Promise<M> {
    if (!this.#made) await this.#epoch();
    return this.#options.thread.run(operation, [this.#name, ...args], map);
  }

  /** Events before this place are no longer kept. */
  #oldest(): string {
    return placeOf({ ms: Math.max(this.nowMs() - this.#options.retentionMs, 0), seq: 0 });
  }
}

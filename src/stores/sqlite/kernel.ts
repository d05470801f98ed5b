import { assertOf, type Cursor, newEpoch, placeIn, placeOf } from "../cursor.ts";
import {
  type AccountKernel,
  Accounts,
  type Commit,
  type Committed,
  type Kernel,
  type RangeOptions,
  type Read,
  type Row,
  type RowPage,
  type Scored,
} from "../kernel.ts";
import { LocalAccount } from "../local-account.ts";
import type { AccountName } from "./operations.ts";
import type { StoreThread } from "./store-thread.ts";

export interface SqliteKernelOptions {
  /** Stays open when the store is closed. */
  readonly thread: Pick<StoreThread, "run">;
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
  const open = (name: string) => new SqliteAccount(options, name);
  return new Accounts({ durable: true, open }).sweepEvery(sweepMs, async () => {
    // In small portions, so that writes run in between.
    while (await thread.run("sweep", [now(), retentionMs]));
  });
}

/** One account's part of the store. Only this process writes to it. */
class SqliteAccount extends LocalAccount implements AccountKernel {
  readonly #options: SqliteKernelOptions;
  readonly #of: AccountName;

  constructor(options: SqliteKernelOptions, name: string) {
    super(options.now);
    this.#options = options;
    this.#of = { name, epoch: newEpoch() };
  }

  async read(keys: readonly string[]): Promise<Read> {
    return this.#run("read", [this.#oldest(), keys, this.nowMs()]);
  }

  async commit(commit: Commit): Promise<Committed> {
    return this.#options.thread.run(
      "commit",
      [this.#of, commit, this.nowMs()],
      (done: Committed) => {
        // In the order of the log, since results come in the order of the commits.
        if (done.kind === "committed") this.publish(commit.events, done.cursors);
        return done;
      },
      // Its events may be in the log, and no watch was told of them.
      (error) => this.end(error),
    );
  }

  async page(
    topic: string | undefined,
    after: Cursor | undefined,
    limit: number,
  ): Promise<RowPage> {
    return this.#run("page", [this.#oldest(), topic, after && placeIn(after), limit]);
  }

  async newest(topic: string | undefined, limit: number, before?: Cursor): Promise<readonly Row[]> {
    if (before !== undefined) {
      const { bounds } = await this.page(topic, undefined, 0);
      assertOf(before, bounds.epoch);
    }
    return this.#run("newest", [this.#oldest(), topic, limit, before && placeIn(before)]);
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

  #run<T>(operation: string, args: readonly unknown[]): Promise<T> {
    return this.#options.thread.run(operation, [this.#of, ...args]);
  }

  /** Events before this place are no longer kept. */
  #oldest(): string {
    return placeOf({ ms: Math.max(this.nowMs() - this.#options.retentionMs, 0), seq: 0 });
  }
}

import { newEpoch } from "../cursor.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { type Ask, LocalAccount } from "../local-account.ts";
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
  const open = (name: string) => {
    const of: AccountName = { name, epoch: newEpoch(), retentionMs };
    const ask: Ask = (operation, args, hear, onLost) =>
      thread.run(operation, [of, ...args], hear, onLost);
    return new LocalAccount(ask, now);
  };
  return kernelOf(true, open, sweepMs, async () => {
    // In small portions, so that writes run in between.
    while (await thread.run("sweep", [now(), retentionMs]));
  });
}

import type { Cursor } from "./cursor.ts";
import type { AccountKernel, Commit, Committed, Listener, RangeOptions } from "./kernel.ts";
import type { StoredAccount } from "./stored-account.ts";

/** What the store of an account does. */
export type Operation = "read" | "commit" | "page" | "range";

/**
 * Does an operation of an account, where it is stored.
 * @param hear is called with the result, in the order in which the operations were done
 * @param onLost is called if no result arrives any more: the operation may have been done
 */
export type Ask = <O extends Operation, T extends ReturnType<StoredAccount[O]>>(
  operation: O,
  args: Parameters<StoredAccount[O]>,
  hear?: (result: T) => void,
  onLost?: (error: Error) => void,
) => Promise<T>;

/** An account that no other process uses: its watches are in this process. */
export class LocalAccount implements AccountKernel {
  readonly hasClock = true;
  readonly nowMs: () => number;
  readonly #ask: Ask;
  readonly #listeners = new Set<Listener>();

  /** @param now wall clock in milliseconds */
  constructor(ask: Ask, now = Date.now) {
    this.#ask = ask;
    this.nowMs = now;
  }

  read(keys: readonly string[]) {
    return this.#ask("read", [this.nowMs(), keys]);
  }

  commit(commit: Commit) {
    const publish = (done: Committed) => {
      if (done.kind === "conflict") return;
      for (const [n, { bytes }] of commit.events.entries()) {
        const row = { cursor: done.cursors[n] ?? "", bytes };
        for (const listener of this.#listeners) listener.row(row);
      }
    };
    // Its events may be in the log, and no watch was told of them.
    return this.#ask("commit", [this.nowMs(), commit], publish, (error) => this.end(error));
  }

  page(topic: string | undefined, at: Cursor | undefined, limit: number, newest = false) {
    return this.#ask("page", [this.nowMs(), topic, at, limit, newest]);
  }

  range(indexes: readonly string[], options: RangeOptions) {
    return this.#ask("range", [this.nowMs(), indexes, options]);
  }

  async watch(listener: Listener): Promise<() => void> {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  end(error: Error): void {
    for (const listener of [...this.#listeners]) listener.fail(error);
    this.#listeners.clear();
  }
}

import type { Cursor } from "./cursor.ts";
import type { Listener, NewEvent } from "./kernel.ts";

/** The part of an account's store that is in this process, where no other process has the store. */
export abstract class LocalAccount {
  readonly hasClock = true;
  readonly #now: () => number;
  readonly #listeners = new Set<Listener>();
  /** After a restart no other holder competes. */
  readonly #leases = new Map<string, { holder: string; untilMs: number }>();

  /** @param now wall clock in milliseconds */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  nowMs(): number {
    return this.#now();
  }

  async watch(listener: Listener): Promise<() => void> {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Tells watches of the events of a commit; called in the order of the commits. */
  protected publish(events: readonly NewEvent[], cursors: readonly Cursor[]): void {
    for (const [n, { bytes }] of events.entries()) {
      const row = { cursor: cursors[n] ?? "", bytes };
      for (const listener of this.#listeners) listener.row(row);
    }
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
}

import { passOver, UnreadableRecord } from "./record.ts";

/**
 * Writes that could not be made yet, tried again until all are made. They are made in order, but a
 * write that fails may be overtaken by later ones: each must do no harm when it is made late, or after
 * a try whose answer was lost. What is to be written to a record that cannot be read is not kept.
 */
export class Outbox {
  readonly #onStateChange: (state: "shared" | "alone", cause?: unknown) => void;
  readonly #writes = new Set<() => Promise<unknown>>();
  #flushing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(onStateChange: (state: "shared" | "alone", cause?: unknown) => void) {
    this.#onStateChange = onStateChange;
  }

  /** Writes wait: among them are locks, which no call that begins must overtake. */
  get isBehind(): boolean {
    return this.#writes.size > 0;
  }

  /**
   * Keeps a write for later, after it failed.
   * @param write once it was made, it returns the same when it is called again
   */
  add(write: () => Promise<unknown>, cause?: unknown): void {
    if (cause instanceof UnreadableRecord) return;
    if (!this.isBehind) this.#onStateChange("alone", cause);
    this.#writes.add(write);
    this.#retryLater();
  }

  /** Makes all waiting writes. @throws the error of the first that fails: failed and remaining ones stay */
  flush(): Promise<void> {
    if (!this.isBehind) return Promise.resolve();
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.flush().catch(() => {});
  }

  async #flush(): Promise<void> {
    while (this.isBehind) {
      const writes = [...this.#writes].slice(0, atOnce);
      const made = await Promise.allSettled(
        writes.map(async (write) => {
          await write().catch(passOver);
          this.#writes.delete(write);
        }),
      );
      for (const one of made) if (one.status === "rejected") throw one.reason;
    }
    this.#onStateChange("shared");
  }

  #retryLater(): void {
    if (this.#isClosed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.flush().catch(() => this.#retryLater());
    }, retryMs).unref();
  }
}

/** Writes under way at a time: after a long outage there are many, and calls wait for them. */
const atOnce = 100;

const retryMs = 250;

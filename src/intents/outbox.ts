type Write = () => Promise<void>;

/**
 * Writes that could not be made yet. They are made in their order, but for those that failed when
 * others behind them did not: each must do no harm when it is made twice, or late. It goes on trying
 * by itself until all are made.
 */
export class Outbox {
  readonly #onStateChange: (state: "shared" | "alone", cause?: unknown) => void;
  readonly #writes = new Set<Write>();
  #flushing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(onStateChange: (state: "shared" | "alone", cause?: unknown) => void) {
    this.#onStateChange = onStateChange;
  }

  get isEmpty(): boolean {
    return this.#writes.size === 0;
  }

  /** Writes now, or, behind what waits already, as soon as it can be done. Never throws. */
  async write(write: Write): Promise<void> {
    if (this.isEmpty) {
      try {
        await write();
        return;
      } catch (error) {
        this.add(write, error);
        return;
      }
    }
    this.add(write);
    await this.flush().catch(() => {});
  }

  /** Keeps a write for later. */
  add(write: Write, cause?: unknown): void {
    if (this.isEmpty) this.#onStateChange("alone", cause);
    this.#writes.add(write);
    this.#tryLater();
  }

  /** Makes all writes that wait. @throws what the first one that fails throws; it stays, with the rest. */
  flush(): Promise<void> {
    if (this.isEmpty) return Promise.resolve();
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.flush().catch(() => {});
  }

  async #flush(): Promise<void> {
    while (!this.isEmpty) {
      const results = await Promise.allSettled(
        this.#first(atOnce).map(async (write) => {
          await write();
          this.#writes.delete(write);
        }),
      );
      const failed = results.find((result) => result.status === "rejected");
      if (failed) throw failed.reason;
    }
    this.#onStateChange("shared");
  }

  #first(count: number): Write[] {
    const first: Write[] = [];
    for (const write of this.#writes) {
      if (first.push(write) === count) break;
    }
    return first;
  }

  #tryLater(): void {
    if (this.#closed || this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.flush().catch(() => this.#tryLater());
    }, retryMs).unref();
  }
}

/** Writes under way at a time: after a long absence there are many, and calls wait for them. */
const atOnce = 100;

const retryMs = 250;

type Write = () => Promise<void>;

/**
 * Writes that could not be made yet, in their order. Each must do no harm when it is made twice. It
 * goes on trying by itself until they are made.
 */
export class Outbox {
  readonly #onStateChange: (state: "shared" | "alone", cause?: unknown) => void;
  readonly #writes: Write[] = [];
  #flushing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(onStateChange: (state: "shared" | "alone", cause?: unknown) => void) {
    this.#onStateChange = onStateChange;
  }

  get isEmpty(): boolean {
    return this.#writes.length === 0;
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
    this.#writes.push(write);
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
    for (let write = this.#writes[0]; write; write = this.#writes[0]) {
      await write();
      this.#writes.shift();
    }
    this.#onStateChange("shared");
  }

  #tryLater(): void {
    if (this.#closed || this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.flush().catch(() => this.#tryLater());
    }, retryMs).unref();
  }
}

const retryMs = 250;

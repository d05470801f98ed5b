import { UnreadableRecord } from "./record.ts";

type Write = () => Promise<void>;

/**
 * Writes that could not be made yet, tried again until all are made. They are made in order, but a
 * write that fails may be overtaken by later ones: each write must do no harm when it is made
 * twice, or late.
 */
export class Outbox {
  readonly #onStateChange: (state: "shared" | "alone", cause?: unknown) => void;
  readonly #writes = new Set<Write>();
  #flushing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** What `#timer` was set to, in milliseconds. */
  #pauseMs = 0;
  #closed = false;
  #state: "shared" | "alone" = "shared";

  constructor(onStateChange: (state: "shared" | "alone", cause?: unknown) => void) {
    this.#onStateChange = onStateChange;
  }

  /** Writes wait that others must not overtake: those to records that cannot be read do not count. */
  get isBehind(): boolean {
    return this.#state === "alone";
  }

  /** Makes the write as soon as it can be made, after those that wait already. Never throws. */
  async write(write: Write): Promise<void> {
    if (!this.isBehind) {
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
    this.#writes.add(write);
    const isUnreadable = cause instanceof UnreadableRecord;
    this.#tryIn(isUnreadable ? unreadableMs : retryMs);
    if (!isUnreadable) this.#turn("alone", cause);
  }

  #turn(state: "shared" | "alone", cause?: unknown): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#onStateChange(state, cause);
  }

  /**
   * Makes all waiting writes. One to a record that cannot be read stays, and holds up nothing else.
   * @throws the error of the first other one that fails; failed and remaining writes stay
   */
  flush(): Promise<void> {
    if (this.#writes.size === 0) return Promise.resolve();
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
    const unreadable = new Set<Write>();
    for (;;) {
      const writes = this.#firstWithout(unreadable);
      if (writes.length === 0) break;
      const failures: unknown[] = [];
      await Promise.all(
        writes.map(async (write) => {
          try {
            await write();
            this.#writes.delete(write);
          } catch (error) {
            if (error instanceof UnreadableRecord) unreadable.add(write);
            else failures.push(error);
          }
        }),
      );
      if (failures.length > 0) throw failures[0];
    }
    this.#turn("shared");
    if (this.#writes.size > 0) this.#tryIn(unreadableMs);
  }

  #firstWithout(unreadable: ReadonlySet<Write>): Write[] {
    const first: Write[] = [];
    for (const write of this.#writes) {
      if (!unreadable.has(write) && first.push(write) === atOnce) break;
    }
    return first;
  }

  #tryIn(ms: number): void {
    if (this.#closed || (this.#timer && this.#pauseMs <= ms)) return;
    clearTimeout(this.#timer);
    this.#pauseMs = ms;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.flush().catch(() => this.#tryIn(retryMs));
    }, ms).unref();
  }
}

/** Writes under way at a time: after a long outage there are many, and calls wait for them. */
const atOnce = 100;

const retryMs = 250;
/** The same while nothing waits but writes to records that cannot be read. */
const unreadableMs = 10_000;

import { GatewayError } from "../../errors.ts";
import type { Cursor } from "../cursor.ts";
import type { Listener, RowPage } from "../kernel.ts";
import type { WakeUps } from "./wake-ups.ts";

/** A page of the events that may be shown: those up to the log's watermark (open-log.lua). */
export interface StoredPage extends RowPage {
  /** The last stored event. It is after `bounds.tail` while it may not be shown yet. */
  readonly stored: Cursor;
}

/** The states that a feed reports, for metrics and logs. */
export type FeedState =
  /** The store cannot be read: readers wait. */
  | "away"
  /** The store can be read again. */
  | "back"
  /** The last delivered event is gone, or the log was replaced: all readers got an error. */
  | "lost";

export interface FeedOptions {
  /** Reads the account's events after a cursor; with a limit of 0 only the bounds. */
  readonly read: (after: Cursor | undefined, limit: number) => Promise<StoredPage>;
  /** Waits until replicas hold all that is stored, so that it may be shown. */
  readonly settle: () => Promise<void>;
  readonly wakeUps: WakeUps;
  readonly channel: string;
  readonly onState: (state: FeedState, error?: unknown) => void;
  readonly listener: Listener;
}

const pageSize = 256;
/** How often the feed polls the store, even without a wake-up, in milliseconds. */
const lookMs = 1_000;
/** How often it polls while the store cannot be read, in milliseconds. */
const lookForStoreMs = 250;

/**
 * Delivers what any process appends to one account's log to a listener in this process: it reads on
 * from its place when it is woken, and polls once a second. It never skips an event: if its place in
 * the log is lost, the listener gets an error.
 */
export class RedisFeed {
  readonly #options: FeedOptions;
  /**
   * Everything up to here was delivered and is not delivered again; empty until the feed has its
   * place, and once it has ended.
   */
  place: Cursor = "";
  /** The last stored event as of the latest read. It is after `place` while it may not be shown. */
  #stored: Cursor = "";
  #woken = false;
  #ended = false;
  /** Ends the pause before the next read. */
  #resume = () => {};

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** Ends the feed with an error for its listener. */
  fail(error: Error): void {
    if (this.#ended) return;
    this.end();
    this.#options.listener.fail(error);
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.place = "";
    this.#resume();
    this.#options.wakeUps.unlisten(this.#options.channel);
  }

  /** Resolves once the feed has its place: everything appended later is delivered. */
  async start(): Promise<void> {
    try {
      const { bounds } = await this.#options.read(undefined, 0);
      if (this.#ended) return;
      this.place = bounds.tail;
    } catch (error) {
      this.fail(error as Error);
      throw error;
    }
    const wake = () => {
      this.#woken = true;
      this.#resume();
    };
    // Read once when the subscription is made: wake-ups do not cover what was appended before.
    void this.#options.wakeUps.listen(this.#options.channel, wake).then(wake);
    void this.#follow();
  }

  async #follow(): Promise<void> {
    const { onState, wakeUps, channel, settle } = this.#options;
    let isAway = false;
    /** `#stored` as of the previous poll. */
    let storedBefore = "";
    for (;;) {
      if (!this.#woken) await this.#pause(isAway ? lookForStoreMs : lookMs);
      if (this.#ended) return;
      const isPoll = !this.#woken;
      this.#woken = false;
      const before = this.place;
      try {
        await this.#catchUp();
        if (isAway) onState("back");
        isAway = false;
      } catch (error) {
        if (this.#ended) return;
        if (!(error instanceof GatewayError) || error.code !== "UNAVAILABLE") {
          onState("lost", error);
          this.fail(error as Error);
          return;
        }
        if (!isAway) onState("away", error);
        isAway = true;
      }
      if (!isPoll || this.#ended) continue;
      if (this.place !== before && !this.#woken) wakeUps.renew(channel);
      // An event of the previous poll still may not be shown: the gateway that stored it could not
      // get it confirmed, or is gone. Move the watermark on its behalf.
      if (storedBefore > this.place) settle().catch(() => {});
      storedBefore = this.#stored;
    }
  }

  /** Until a wake-up, the end, or for so long. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms).unref();
      this.#resume = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Reads to the end of the log. */
  async #catchUp(): Promise<void> {
    for (;;) {
      const { rows, upTo, bounds, stored } = await this.#options.read(this.place, pageSize);
      if (this.#ended) return;
      for (const row of rows) this.#options.listener.row(row);
      this.place = upTo;
      this.#stored = stored;
      if (upTo === bounds.tail) return;
    }
  }
}

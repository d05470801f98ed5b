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
  /** Called when the feed has ended: it lost its place, or `end` or `fail` was called. */
  readonly onEnd: () => void;
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
  /** Resolves once the feed has its place: everything appended later is delivered. */
  readonly started: Promise<void>;
  readonly #options: FeedOptions;
  #place: Cursor = "";
  /**
   * The last stored event as of the latest read. It is after `#place` while it may not be shown.
   */
  #stored: Cursor = "";
  /** `#stored` as of the previous poll. */
  #storedBefore: Cursor = "";
  #reading = false;
  #again = false;
  #woken = false;
  #away = false;
  #ended = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FeedOptions) {
    this.#options = options;
    this.started = this.#start();
    this.started.catch(() => {});
  }

  /**
   * Everything up to here was delivered and is not delivered again; empty until `started` resolves.
   */
  get place(): Cursor {
    return this.#place;
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
    clearTimeout(this.#timer);
    this.#options.wakeUps.unlisten(this.#options.channel);
    this.#options.onEnd();
  }

  async #start(): Promise<void> {
    try {
      this.#place = (await this.#options.read(undefined, 0)).bounds.tail;
    } catch (error) {
      this.fail(error as Error);
      throw error;
    }
    if (this.#ended) return;
    const wake = () => {
      this.#woken = true;
      void this.#readOn();
    };
    // Read once when the subscription is made: wake-ups do not cover what was appended before.
    void this.#options.wakeUps.listen(this.#options.channel, wake).then(wake);
    this.#lookIn(lookMs);
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), ms).unref();
  }

  async #look(): Promise<void> {
    this.#woken = false;
    const before = this.#place;
    await this.#readOn();
    if (this.#ended) return;
    if (this.#place !== before && !this.#woken) {
      this.#options.wakeUps.renew(this.#options.channel);
    }
    // An event of the previous poll still may not be shown: the gateway that stored it could not
    // get it confirmed, or is gone. Move the watermark on its behalf.
    const hidden = this.#storedBefore > this.#place;
    this.#storedBefore = this.#stored;
    if (hidden) await this.#options.settle().catch(() => {});
  }

  /** Reads to the end of the log. A wake-up meanwhile makes it read once more. */
  async #readOn(): Promise<void> {
    this.#again = true;
    if (this.#reading) return;
    this.#reading = true;
    try {
      while (this.#again && !this.#ended) {
        this.#again = false;
        await this.#catchUp();
      }
      if (this.#away) this.#options.onState("back");
      this.#away = false;
    } catch (error) {
      if (this.#ended) return;
      if (!(error instanceof GatewayError) || error.code !== "UNAVAILABLE") {
        this.#options.onState("lost", error);
        this.fail(error as Error);
        return;
      }
      if (!this.#away) this.#options.onState("away", error);
      this.#away = true;
    } finally {
      this.#reading = false;
      if (!this.#ended) this.#lookIn(this.#away ? lookForStoreMs : lookMs);
    }
  }

  async #catchUp(): Promise<void> {
    for (;;) {
      const { rows, upTo, bounds, stored } = await this.#options.read(this.#place, pageSize);
      if (this.#ended) return;
      for (const row of rows) this.#options.listener.row(row);
      this.#place = upTo;
      this.#stored = stored;
      if (upTo === bounds.tail) return;
    }
  }
}

import { GatewayError } from "../../errors.ts";
import { cursorExpired } from "../cursor.ts";
import { type Follower, Hub } from "../hub.ts";
import type { Cursor, Topic } from "../log.ts";
import type { StoredPage } from "./store.ts";
import type { WakeUps } from "./wake-ups.ts";

/** What a feed goes through, for metrics and logs. */
export type FeedState =
  /** The store cannot be read: its readers wait. */
  | "away"
  /** It can be read again. */
  | "back"
  /** What was delivered last is gone, or the log is another one: its readers were let go. */
  | "lost";

export interface FeedOptions {
  /** Reads the account's events behind a cursor; the bounds alone for a limit of 0. */
  readonly read: (after: Cursor | undefined, limit: number) => Promise<StoredPage>;
  /** Has what is stored held by replicas, so that it may be shown. */
  readonly settle: () => Promise<void>;
  readonly wakeUps: WakeUps;
  readonly channel: string;
  readonly onState: (state: FeedState, error?: unknown) => void;
  /** It has ended: nobody followed, its place in the log was lost, or it was ended from outside. */
  readonly onEnd: () => void;
}

const pageSize = 256;
/** How often it looks without having been woken. */
const lookMs = 1_000;
/** The same while the store is away. */
const lookForStoreMs = 250;

/**
 * Brings what any process appends to one account's log to those in this process that follow it: one
 * feed for all of them, which reads on from its place when it is woken, and by itself once a
 * second. It never skips: when its place in the log is lost, so are its followers.
 */
export class RedisFeed {
  /** Resolves once it has its place: what is appended after that is delivered. */
  readonly started: Promise<void>;
  readonly #options: FeedOptions;
  readonly #hub = new Hub();
  #place: Cursor = "";
  /** The last event that is stored, as it was read last. */
  #stored: Cursor = "";
  /** The same at the look before. */
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

  /** All up to here was delivered, and is not again; empty while it has no place yet. */
  get place(): Cursor {
    return this.#place;
  }

  follow(topic: Topic, follower: Follower): () => void {
    return this.#hub.follow(topic, follower);
  }

  /** Lets all followers go. */
  end(error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#options.wakeUps.unlisten(this.#options.channel);
    this.#options.onEnd();
    this.#hub.fail(error);
  }

  async #start(): Promise<void> {
    try {
      this.#place = (await this.#options.read(undefined, 0)).bounds.tail;
    } catch (error) {
      this.end(error as Error);
      throw error;
    }
    if (this.#ended) return;
    const wake = () => {
      this.#woken = true;
      void this.#readOn();
    };
    // What is appended until the hints come in is found by looking once they do.
    void this.#options.wakeUps.listen(this.#options.channel, wake).then(wake);
    this.#lookIn(lookMs);
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), ms).unref();
  }

  async #look(): Promise<void> {
    if (this.#hub.size === 0) return this.end(nobodyFollows());
    this.#woken = false;
    const before = this.#place;
    await this.#readOn();
    if (this.#ended) return;
    if (this.#place !== before && !this.#woken) {
      this.#options.wakeUps.renew(this.#options.channel);
    }
    // Its gateway did not move the mark within one look: it refused the event, or it is gone.
    const hidden = this.#storedBefore > this.#place;
    this.#storedBefore = this.#stored;
    if (hidden) await this.#options.settle().catch(() => {});
  }

  /** Reads to the end of the log; a wake-up meanwhile has it look once more. */
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
        this.end(error as Error);
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
      const { events, upTo, bounds, stored } = await this.#options.read(this.#place, pageSize);
      if (this.#ended) return;
      for (const event of events) this.#hub.publish(event);
      this.#place = upTo;
      this.#stored = stored;
      if (upTo === bounds.tail) return;
    }
  }
}

/** Told to nobody. */
function nobodyFollows(): GatewayError {
  return cursorExpired("nobody follows");
}

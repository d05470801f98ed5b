import { activeSpan } from "../../telemetry/tracing/active-span.ts";
import type { Bounds } from "../cursor.ts";
import type { Follower } from "../hub.ts";
import type { Cursor, Topic } from "../log.ts";
import type { Page, StoredLog } from "../tail.ts";
import { isAbout } from "../topics.ts";
import type { FeedState } from "./feed.ts";
import { RedisFeed } from "./feed.ts";
import type { RedisStore } from "./store.ts";
import type { WakeUps } from "./wake-ups.ts";

export interface RedisAccountOptions {
  readonly store: RedisStore;
  readonly wakeUps: WakeUps;
  /** Pub/sub channel of the account's wake-ups. */
  readonly channel: string;
  readonly onState: (state: FeedState, error?: unknown) => void;
}

/**
 * One account's log for the readers in this process: the store, and a feed while there are readers.
 */
export class RedisAccount implements StoredLog {
  readonly #options: RedisAccountOptions;
  #feed: RedisFeed | undefined;

  constructor(options: RedisAccountOptions) {
    this.#options = options;
  }

  get store(): RedisStore {
    return this.#options.store;
  }

  async follow(topic: Topic, follower: Follower): Promise<() => void> {
    // The feed serves all followers, so it must not run in the span of the first one.
    this.#feed ??= activeSpan.exit(() => this.#openFeed());
    const feed = this.#feed;
    const detach = feed.follow(topic, follower);
    try {
      await feed.started;
      return detach;
    } catch (error) {
      detach();
      throw error;
    }
  }

  async bounds(): Promise<Bounds> {
    return (await this.store.read(undefined, 0, undefined, this.#feed?.place)).bounds;
  }

  async page(topic: Topic, after: Cursor | undefined, limit: number): Promise<Page> {
    const place = this.#feed?.place;
    if ("externalId" in topic) return this.store.read(after, limit, topic, place);
    const page = await this.store.read(after, limit, undefined, place);
    return { ...page, events: page.events.filter((event) => isAbout(topic, event)) };
  }

  close(error: Error): void {
    this.#feed?.end(error);
  }

  #openFeed(): RedisFeed {
    const { store, wakeUps, channel, onState } = this.#options;
    return new RedisFeed({
      read: (after, limit) => store.read(after, limit),
      settle: () => store.settle(),
      wakeUps,
      channel,
      onState,
      onEnd: () => {
        this.#feed = undefined;
      },
    });
  }
}

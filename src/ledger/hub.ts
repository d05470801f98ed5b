import type { Event } from "../gen/payments/v1/event_pb.ts";
import { kindOf } from "../model/kinds.ts";
import { isAbout, type Topic } from "./log.ts";
import { keyOfTopic, recordKey } from "./record.ts";

/** Receives events as they are stored. Neither method may throw or block. */
export interface Follower {
  event(event: Event): void;
  /** Delivery has ended with this error. */
  fail(error: Error): void;
}

interface Following {
  readonly topic: Topic;
  readonly follower: Follower;
}

/** One account's followers in this process. They receive events in the order of `publish`. */
export class Hub {
  /** By the key of the record that they follow; those that follow kinds have an empty one. */
  readonly #followers = new Map<string, Set<Following>>();

  /**
   * Attaches a follower to a topic. @returns a function that detaches it; it may be called
   * repeatedly
   */
  follow(topic: Topic, follower: Follower): () => void {
    const key = keyOfTopic(topic) ?? "";
    const followers = this.#followers.get(key) ?? new Set();
    const following = { topic, follower };
    this.#followers.set(key, followers.add(following));
    return () => {
      followers.delete(following);
      if (followers.size === 0 && this.#followers.get(key) === followers) {
        this.#followers.delete(key);
      }
    };
  }

  publish(event: Event): void {
    this.#tell(recordKey(kindOf(event.kind), event.externalId), event);
    this.#tell("", event);
  }

  #tell(key: string, event: Event): void {
    const followers = this.#followers.get(key);
    if (!followers) return;
    for (const { topic, follower } of followers) if (isAbout(topic, event)) follower.event(event);
  }

  /** Detaches all followers with an error. */
  fail(error: Error): void {
    const all = [...this.#followers.values()].flatMap((followers) => [...followers]);
    this.#followers.clear();
    for (const { follower } of all) follower.fail(error);
  }

  get isEmpty(): boolean {
    return this.#followers.size === 0;
  }
}

import type { Event } from "../gen/payments/v1/event_pb.ts";
import { kindOf } from "../model/kinds.ts";
import type { Topic } from "./log.ts";
import { keyOfTopic, recordKey } from "./record.ts";

/** Receives events as they are stored. Neither method may throw or block. */
export interface Follower {
  event(event: Event): void;
  /** Delivery has ended with this error. */
  fail(error: Error): void;
}

/** One account's followers in this process. They receive events in the order of `publish`. */
export class Hub {
  /** By the key of the record that they follow; empty for those of all events. */
  readonly #followers = new Map<string, Set<Follower>>();

  /**
   * Attaches a follower to a topic. @returns a function that detaches it; it may be called
   * repeatedly
   */
  follow(topic: Topic, follower: Follower): () => void {
    const key = keyOfTopic(topic) ?? "";
    const followers = this.#followers.get(key) ?? new Set<Follower>();
    this.#followers.set(key, followers.add(follower));
    return () => {
      followers.delete(follower);
      if (followers.size === 0 && this.#followers.get(key) === followers) {
        this.#followers.delete(key);
      }
    };
  }

  publish(event: Event): void {
    for (const key of [recordKey(kindOf(event.kind), event.externalId), ""]) {
      this.#followers.get(key)?.forEach((follower) => {
        follower.event(event);
      });
    }
  }

  /** Detaches all followers with an error. */
  fail(error: Error): void {
    const all = [...this.#followers.values()].flatMap((followers) => [...followers]);
    this.#followers.clear();
    for (const follower of all) follower.fail(error);
  }

  get isEmpty(): boolean {
    return this.#followers.size === 0;
  }
}

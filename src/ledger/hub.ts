import type { Event } from "../gen/payments/v1/event_pb.ts";
import { kindOf } from "../model/kinds.ts";
import { isAbout, type Topic } from "./log.ts";
import { recordKey } from "./record.ts";

/** Receives events as they are stored. Neither method may throw or block. */
export interface Follower {
  event(event: Event): void;
  /** Delivery has ended with this error. */
  fail(error: Error): void;
}

/** One account's followers in this process. They receive events in the order of `publish`. */
export class Hub {
  readonly #ofRecord = new Map<string, Set<Follower>>();
  readonly #ofKinds = new Map<Follower, Topic>();

  /**
   * Attaches a follower to a topic. @returns a function that detaches it; it may be called
   * repeatedly
   */
  follow(topic: Topic, follower: Follower): () => void {
    if (!("externalId" in topic)) {
      this.#ofKinds.set(follower, topic);
      return () => this.#ofKinds.delete(follower);
    }
    const key = recordKey(topic.kind, topic.externalId);
    const followers = this.#ofRecord.get(key) ?? new Set();
    this.#ofRecord.set(key, followers.add(follower));
    return () => {
      followers.delete(follower);
      if (followers.size === 0 && this.#ofRecord.get(key) === followers) {
        this.#ofRecord.delete(key);
      }
    };
  }

  publish(event: Event): void {
    const followers = this.#ofRecord.get(recordKey(kindOf(event.kind), event.externalId));
    if (followers) for (const follower of followers) follower.event(event);
    for (const [follower, topic] of this.#ofKinds) {
      if (isAbout(topic, event)) follower.event(event);
    }
  }

  /** Detaches all followers with an error. */
  fail(error: Error): void {
    const all = [...this.#ofRecord.values()].flatMap((followers) => [...followers]);
    for (const follower of [...all, ...this.#ofKinds.keys()]) follower.fail(error);
    this.#ofRecord.clear();
    this.#ofKinds.clear();
  }

  /** Number of followers. */
  get size(): number {
    let size = this.#ofKinds.size;
    for (const followers of this.#ofRecord.values()) size += followers.size;
    return size;
  }
}

import type { Redis } from "ioredis";
import { within } from "../../net/timer.ts";
import type { RedisConnector } from "../../redis/connect.ts";

/** Signals that an event was stored. Only a hint: it may come late, twice, or not at all. */
export type WakeUps = ReturnType<typeof createWakeUps>;

const subscribeMs = 1_000;

/**
 * Wake-ups over one connection for all channels, opened with the first one. Failures are swallowed:
 * listeners also poll, and call `renew` when they find an event without a wake-up.
 */
export function createWakeUps(redis: RedisConnector) {
  const listeners = new Map<string, () => void>();
  let client: Redis | undefined;

  function open(): Redis {
    const opened = redis.subscriber();
    opened.on("message", (channel: string) => listeners.get(channel)?.());
    // Subscribe to the channels that were added while there was no connection.
    opened.on("ready", async () => {
      if (listeners.size === 0) return;
      await subscribe([...listeners.keys()]);
      for (const listener of listeners.values()) listener();
    });
    return opened;
  }

  async function subscribe(channels: readonly string[]): Promise<void> {
    client ??= open();
    if (client.status !== "ready") return;
    await within(subscribeMs, client.subscribe(...channels)).catch(() => {});
  }

  return {
    /**
     * Calls the listener for each wake-up on the channel, which has one listener at most. Resolves
     * when the subscription is made or has failed.
     */
    listen(channel: string, listener: () => void): Promise<void> {
      listeners.set(channel, listener);
      return subscribe([channel]);
    },
    /** Subscribes again, after a wake-up did not arrive. */
    renew: (channel: string) => void subscribe([channel]),
    unlisten(channel: string): void {
      listeners.delete(channel);
      if (client?.status !== "ready") return;
      void within(subscribeMs, client.unsubscribe(channel)).catch(() => {});
    },
  };
}

import type { RedisClient, RedisConnector } from "../../redis/connect.ts";
import { within } from "../../redis/deadline.ts";

/** Tells that something was stored. A hint only: it may come late, twice, or not at all. */
export interface WakeUps {
  /**
   * Calls the listener for each hint on the channel, which has one listener at most. Resolves when
   * hints come in from now on, or may fail to.
   */
  listen(channel: string, listener: () => void): Promise<void>;
  /** Asks for the hints again: one did not come. */
  renew(channel: string): void;
  unlisten(channel: string): void;
  close(): void;
}

const subscribeMs = 1_000;

/**
 * One connection for all channels, opened with the first one. Failures are swallowed: whoever
 * listens also looks by itself, and asks for the hints again when it found something without one.
 */
export function createWakeUps(redis: RedisConnector): WakeUps {
  const listeners = new Map<string, () => void>();
  let client: RedisClient | undefined;

  function open(): RedisClient {
    const opened = redis.dedicated();
    opened.on("message", (channel: string) => listeners.get(channel)?.());
    // What could not be asked for without a connection is asked for now.
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
    listen(channel, listener) {
      listeners.set(channel, listener);
      return subscribe([channel]);
    },
    renew: (channel) => void subscribe([channel]),
    unlisten(channel) {
      listeners.delete(channel);
      if (client?.status !== "ready") return;
      void within(subscribeMs, client.unsubscribe(channel)).catch(() => {});
    },
    close() {
      listeners.clear();
      client?.disconnect();
    },
  };
}

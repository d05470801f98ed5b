import type { Cluster, Redis } from "ioredis";

/** A client that is not ready for this long is connected anew, in milliseconds. */
const stuckMs = 10_000;

/**
 * Opens a client's connection again until its owner calls `disconnect()`: the driver gives up in
 * some cases, as when a connection ends while its Sentinels are being asked. `pauseMs` gives the
 * pause before each try.
 */
export function keepConnected(
  client: Redis | Cluster,
  pauseMs: (tries: number) => number,
  onReleased: () => void = () => {},
): void {
  let tries = 0;
  let released = false;
  let reopening: NodeJS.Timeout | undefined;
  let watchdog: NodeJS.Timeout | undefined;
  const disconnect = client.disconnect.bind(client);
  client.disconnect = (reconnect = false) => {
    if (!reconnect) {
      released = true;
      clearTimeout(reopening);
      clearTimeout(watchdog);
      onReleased();
    }
    disconnect(reconnect);
  };

  function reopenIn(ms: number): void {
    clearTimeout(reopening);
    if (released) return;
    reopening = setTimeout(() => {
      // `connect` rejects during another try; the events report how this one ends.
      client.connect().catch(() => {});
      watch();
    }, ms).unref();
  }
  /** Ends a try that neither succeeds nor fails. */
  function watch(): void {
    clearTimeout(watchdog);
    if (released) return;
    watchdog = setTimeout(() => {
      if (client.status === "ready") return;
      disconnect(true);
      reopenIn(pauseMs(++tries));
      watch();
    }, stuckMs).unref();
  }

  client.on("ready", () => {
    tries = 0;
    clearTimeout(watchdog);
  });
  client.on("close", watch);
  client.on("end", () => {
    if (!released) reopenIn(pauseMs(++tries));
  });
  watch();
}

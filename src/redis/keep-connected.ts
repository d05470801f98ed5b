import type { Cluster, Redis } from "ioredis";

/** A client that is in no state to serve for so long is opened anew, in milliseconds. */
const stuckMs = 10_000;

/**
 * Opens a client's connection again, for as long as nobody here has called `disconnect()`: the driver
 * gives up in some cases, as when a connection ends while its Sentinels are being asked. The pauses
 * between tries are those of `pauseMs`.
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
      // Rejects while another try is under way; the events report what becomes of this one.
      client.connect().catch(() => {});
      watch();
    }, ms).unref();
  }
  /** A try that comes to nothing and does not end either is ended from here. */
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
  client.on("end", () => reopenIn(pauseMs(++tries)));
  watch();
}

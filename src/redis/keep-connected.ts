import type { Cluster, Redis } from "ioredis";

/** A client that is not ready for this long is connected anew, in milliseconds. */
const stuckMs = 10_000;
/** The pause before each try: once Redis is back, clients connect well within the promised 2 s. */
const pauseMs = (tries: number) => Math.min(25 * 2 ** Math.min(tries, 5), 500);

/**
 * Opens a client's connection again until its owner calls `disconnect()`. The driver's own retries
 * stay off, since it gives them up in some cases, as when a connection ends while its Sentinels are
 * being asked.
 */
export function keepConnected(client: Redis | Cluster, onReleased: () => void = () => {}): void {
  let tries = 0;
  let timer: NodeJS.Timeout | undefined;
  const lookIn = (ms: number, look: () => void) => {
    clearTimeout(timer);
    timer = setTimeout(look, ms).unref();
  };
  const connectAgain = () =>
    lookIn(pauseMs(++tries), () => {
      // `connect` rejects during another try; the events report how this one ends.
      client.connect().catch(() => {});
      endIfStuck();
    });
  /** Ends a try that neither succeeds nor fails. */
  const endIfStuck = () =>
    lookIn(stuckMs, () => {
      disconnect(true);
      connectAgain();
    });
  const disconnect = client.disconnect.bind(client);
  client.disconnect = (reconnect = false) => {
    if (!reconnect) {
      clearTimeout(timer);
      client.off("end", connectAgain);
      onReleased();
    }
    disconnect(reconnect);
  };
  client.on("ready", () => {
    tries = 0;
    clearTimeout(timer);
  });
  client.on("end", connectAgain);
  endIfStuck();
}

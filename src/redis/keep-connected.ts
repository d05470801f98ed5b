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
  let timer: NodeJS.Timeout | undefined;
  const disconnect = client.disconnect.bind(client);
  client.disconnect = (reconnect = false) => {
    if (!reconnect) {
      released = true;
      clearTimeout(timer);
      onReleased();
    }
    disconnect(reconnect);
  };

  /** After so long, opens the connection, or ends a try that neither succeeds nor fails. */
  function lookIn(ms: number, { isTried }: { readonly isTried: boolean }): void {
    clearTimeout(timer);
    if (released) return;
    timer = setTimeout(() => {
      if (client.status === "ready") return;
      if (isTried) disconnect(true);
      // `connect` rejects during another try; the events report how this one ends.
      else client.connect().catch(() => {});
      lookIn(isTried ? pauseMs(++tries) : stuckMs, { isTried: !isTried });
    }, ms).unref();
  }

  client.on("ready", () => {
    tries = 0;
    clearTimeout(timer);
  });
  client.on("close", () => lookIn(stuckMs, { isTried: true }));
  client.on("end", () => {
    if (!released) lookIn(pauseMs(++tries), { isTried: false });
  });
  lookIn(stuckMs, { isTried: true });
}

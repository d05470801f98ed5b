import { once } from "node:events";
import net from "node:net";
import { listen } from "./listen.ts";

export type CuttingProxy = Awaited<ReturnType<typeof startCuttingProxy>>;

/** A TCP proxy in front of a listener, whose connections can be cut. */
export async function startCuttingProxy(target: string) {
  let { hostname, port } = new URL(target);
  let connections = 0;
  const sockets = new Set<net.Socket>();
  let isCut = false;
  const server = net.createServer((socket) => {
    connections++;
    if (isCut) return socket.resetAndDestroy();
    const upstream = net.connect(Number(port), hostname);
    for (const [from, to] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
    return undefined;
  });
  const own = await listen(server);
  const reset = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    url: `http://127.0.0.1:${own}`,
    /** The number of connections so far. */
    get connections() {
      return connections;
    },
    /** Resets every connection, and refuses new ones until `mend`. */
    cut() {
      isCut = true;
      reset();
    },
    /** Lets connections through again, to another target if one is given. */
    mend(next = target) {
      ({ hostname, port } = new URL(next));
      isCut = false;
    },
    async close() {
      reset();
      server.close();
      await once(server, "close");
    },
  };
}

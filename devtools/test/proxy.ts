import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy whose connections can be cut. */
export interface Proxy {
  readonly url: string;
  /** The number of connections so far. */
  readonly connections: number;
  /** Resets all connections that are open. */
  cut(): void;
  /** Sends new connections to this port; undefined: resets them. */
  aim(port: number | undefined): void;
  close(): Promise<void>;
}

export async function startProxy(port: number): Promise<Proxy> {
  let target: number | undefined = port;
  let connections = 0;
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
  };
  const server = createServer((inner) => {
    connections += 1;
    keep(inner);
    if (target === undefined) return inner.resetAndDestroy();
    const outer = connect(target, "127.0.0.1");
    keep(outer);
    inner.pipe(outer).pipe(inner);
    inner.on("close", () => outer.destroy());
    outer.on("close", () => inner.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get connections() {
      return connections;
    },
    cut,
    aim(to) {
      target = to;
    },
    async close() {
      server.close();
      cut();
      await once(server, "close");
    },
  };
}

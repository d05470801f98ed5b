import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { listen } from "../listen.ts";

/** One request, as received over the wire. */
export interface WireRequest {
  /** `POST /path HTTP/1.1` */
  readonly line: string;
  /** `name: value`, names in lower case, in their order, without `host` and `connection`. */
  readonly headers: readonly string[];
  readonly body: string;
  readonly socket: Socket;
  /** Counted from 0. */
  readonly connection: number;
}

/** The server's reaction to a whole request: a literal answer, or a function of the request. */
export type Script = string | ((request: WireRequest) => void);

/** An HTTP/1.1 server on bare TCP. It writes what the script says, valid or not. */
export async function scriptedServer(script: Script) {
  const requests: WireRequest[] = [];
  const sockets = new Set<Socket>();
  const waiting: Array<{ n: number; resolve: (request: WireRequest) => void }> = [];
  let connections = 0;

  const server = createServer((socket) => {
    const connection = connections++;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    let received = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      received += chunk;
      for (;;) {
        const end = received.indexOf("\r\n\r\n");
        if (end < 0) return;
        const [line = "", ...lines] = received.slice(0, end).split("\r\n");
        const headers = lines.map((text) => text.replace(/^[^:]+/, (name) => name.toLowerCase()));
        const length = headers.find((text) => text.startsWith("content-length: "))?.slice(16);
        const body = Buffer.from(received.slice(end + 4));
        if (body.length < Number(length ?? 0)) return;
        received = body.subarray(Number(length ?? 0)).toString();
        const request = {
          line,
          headers: headers.filter((text) => !/^(host|connection): /.test(text)),
          body: body.subarray(0, Number(length ?? 0)).toString(),
          socket,
          connection,
        };
        requests.push(request);
        for (const { n, resolve } of waiting) if (n < requests.length) resolve(requests[n]!);
        if (typeof script === "string") socket.write(script);
        else script(request);
      }
    });
  });
  const port = await listen(server);

  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    get connections() {
      return connections;
    },
    /** Resolves with the n-th request, counted from 0, as soon as it has arrived. */
    request: (n: number) =>
      new Promise<WireRequest>((resolve) => {
        if (n < requests.length) resolve(requests[n]!);
        else waiting.push({ n, resolve });
      }),
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** An answer with a JSON body. */
export function json(status: number, body: string, ...headers: string[]): string {
  return answer(status, body, "Content-Type: application/json", ...headers);
}

/** An answer with any body and the correct Content-Length. */
export function answer(status: number, body: string, ...headers: string[]): string {
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  return [`HTTP/1.1 ${status} Some Reason`, ...headers, length, "", body].join("\r\n");
}

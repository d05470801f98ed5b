import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { CloseCode, handleProtocols } from "graphql-ws";
import type { Logger } from "pino";
import { type WebSocket, WebSocketServer } from "ws";
import { isForeign } from "./browser-origin.ts";
import { limits } from "./limits.ts";
import { keepAlive, readOnlyWhileRead } from "./socket-flow.ts";
import { createProtocol, type ProtocolOptions } from "./websocket-protocol.ts";

export interface WebSocketOptions extends ProtocolOptions {
  readonly log: Logger;
  /** Origins besides our own whose pages may connect: a browser asks nobody before it does. */
  readonly corsOrigins: readonly string[];
  /** How often a socket is asked whether it is still there, and how long it may take to say so. */
  readonly heartbeatMs: number;
}

/** How long clients may take to answer the close of their socket. */
const closeGraceMs = 1_000;

/** Serves graphql-transport-ws at `/graphql` of a listener, all of whose upgrades it answers. */
export function serveWebSockets(server: Server, options: WebSocketOptions): () => Promise<void> {
  const { log, corsOrigins, heartbeatMs } = options;
  const protocol = createProtocol(options);
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.messageBytes,
    handleProtocols,
  });

  function onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const refused = refusal(request, corsOrigins);
    if (refused) {
      socket.end(`HTTP/1.1 ${refused}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      readOnlyWhileRead(webSocket, socket);
      keepAlive(webSocket, heartbeatMs);
      serve(webSocket, request);
    });
  }

  function serve(socket: WebSocket, request: IncomingMessage): void {
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        send: (text) =>
          new Promise((resolve, reject) => {
            if (socket.readyState !== socket.OPEN) return resolve();
            socket.send(text, (error) => (error ? reject(error) : resolve()));
          }),
        close: (code, reason) => socket.close(code, reason),
        onMessage: (handle) =>
          socket.on("message", (data) => {
            handle(String(data)).catch((error) => {
              if (socket.readyState !== socket.OPEN) return;
              log.error({ err: error }, "a WebSocket message failed");
              socket.close(CloseCode.InternalServerError, "Internal server error");
            });
          }),
      },
      { socket, request, exchanges: new Map() },
    );
    socket.on("error", (error) => log.debug({ err: error }, "a WebSocket failed"));
    socket.once("close", (code, reason) => {
      closed(code, String(reason)).catch((error) => {
        log.error({ err: error }, "a WebSocket was not taken down cleanly");
      });
    });
  }

  server.on("upgrade", onUpgrade);
  return async () => {
    server.off("upgrade", onUpgrade);
    const open = [...sockets.clients];
    const closed = open.map((socket) => new Promise((resolve) => socket.once("close", resolve)));
    for (const socket of open) socket.close(1001, "Going away");
    const cut = setTimeout(() => {
      for (const socket of open) socket.terminate();
    }, closeGraceMs);
    await Promise.all(closed);
    clearTimeout(cut);
    sockets.close();
  };
}

/** The status line that an upgrade is refused with; undefined when it is not. */
function refusal(
  { url, headers }: IncomingMessage,
  corsOrigins: readonly string[],
): string | undefined {
  if (URL.parse(url ?? "/", "http://localhost")?.pathname !== "/graphql") return "404 Not Found";
  const secFetchSite = headers["sec-fetch-site"]?.toString();
  const { origin, host } = headers;
  return isForeign({ origin, host, secFetchSite }, corsOrigins) ? "403 Forbidden" : undefined;
}

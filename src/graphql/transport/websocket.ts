import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { CloseCode, handleProtocols } from "graphql-ws";
import { type WebSocket, WebSocketServer } from "ws";
import { shuttingDown } from "../../errors.ts";
import { Drain } from "../../live/drain.ts";
import { isCrossOrigin } from "../../net/browser-origin.ts";
import { readTarget } from "../../net/http1.ts";
import type { Misdirection } from "../../net/request-head.ts";
import type { Edge } from "../edge.ts";
import { limits } from "../limits.ts";
import { countArriving, inTurn, keepAlive, limitSocket, socketLimits } from "./socket-flow.ts";
import { createProtocol } from "./websocket-protocol.ts";

/** How long a listener takes to close its sockets when it shuts down, in milliseconds. */
export interface DrainTimes {
  /** Longest period over which the closing of idle sockets is spread. */
  readonly spreadMs: number;
  /** Longest time for operations; then their sockets are closed, and soon after terminated. */
  readonly timeoutMs: number;
}

/**
 * Serves graphql-transport-ws at `/graphql` of a listener, and answers all of its upgrade requests.
 * The returned function stops serving, and closes each socket when its operations are over, so that
 * no client misses a last message.
 * @param misdirection which upgrade requests are refused by their headers alone. Default: none
 */
export function serveWebSockets(
  server: Server,
  edge: Edge,
  misdirection?: Misdirection,
): (times: DrainTimes) => Promise<void> {
  const { log, corsOrigins, onCut, intake, heartbeats } = edge;
  const openSession = createProtocol(edge);
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.messageBytes,
    maxFragments: socketLimits.fragments,
    maxBufferedChunks: socketLimits.chunks,
    // How long clients may take to answer the close of their socket. The types lack it.
    ...{ closeTimeout: 1_000 },
    handleProtocols,
    verifyClient({ req }, answer) {
      const status = refusal(req);
      answer(status === undefined, status);
    },
  });
  const drain = new Drain();
  let isDraining = false;

  /** The status with which an upgrade is refused; undefined if it is not. */
  function refusal(request: IncomingMessage): number | undefined {
    if (!readTarget(request)) return 400;
    const misdirected = misdirection?.(request.headers);
    if (misdirected) return misdirected.status;
    if (request.url?.split("?", 1)[0] !== "/graphql") return 404;
    if (isCrossOrigin(request.headers, corsOrigins)) return 403;
    return isDraining ? 503 : undefined;
  }

  function serve(socket: WebSocket, stream: Duplex, request: IncomingMessage): void {
    const session = openSession(socket, stream, request, () => isDraining && close(socket));
    const arriving = countArriving(socket, stream, session.hasCaller);
    // `keepAlive` cuts each client that does not read, but until then many could hold the answers of
    // all the operations that a socket may have: beyond the budget those that hold most are cut.
    const watched = intake.budget.watch({
      bytes: () => socket.bufferedAmount + arriving(),
      cut() {
        onCut("unread_memory");
        socket.terminate();
      },
    });
    keepAlive(socket, onCut, heartbeats);
    limitSocket(socket, stream, onCut);
    socket.once(
      "close",
      drain.join(() => session.isIdle() && close(socket)),
    );
    const handle = inTurn(socket, stream, intake, (text) => {
      session.handle(text).catch((error) => {
        if (socket.readyState !== socket.OPEN) return;
        log.error({ err: error }, "WebSocket message failed");
        socket.close(CloseCode.InternalServerError, "Internal server error");
      });
    });
    socket.on("message", (data) => handle(String(data)));
    socket.on("error", (error) => log.debug({ err: error }, "WebSocket error"));
    socket.once("close", () => watched.leave());
  }

  server.on("upgrade", (request, stream, head) => {
    intake.readTurns.remove(stream);
    sockets.handleUpgrade(request, stream, head, (socket) => serve(socket, stream, request));
  });
  return async ({ spreadMs, timeoutMs }) => {
    // Upgrades are still answered: Node would leave one on an open connection to nobody.
    isDraining = true;
    const closed = [...sockets.clients].map(
      (socket) => new Promise((resolve) => socket.once("close", resolve)),
    );
    drain.end(shuttingDown(), spreadMs);
    const timeUp = setTimeout(() => sockets.clients.forEach(close), timeoutMs);
    await Promise.all(closed);
    clearTimeout(timeUp);
    sockets.close();
  };
}

function close(socket: WebSocket): void {
  // Clients of graphql-transport-ws reconnect after this code.
  socket.close(1012, "Service Restart");
}

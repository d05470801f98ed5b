import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { CloseCode, handleProtocols } from "graphql-ws";
import { type WebSocket, WebSocketServer } from "ws";
import { isCrossOrigin } from "../../net/browser-origin.ts";
import { readTarget } from "../../net/http1.ts";
import type { Misdirection } from "../../net/request-head.ts";
import { leaveInTurn } from "../../net/spread-over-turns.ts";
import type { Edge } from "../edge.ts";
import { limits } from "../limits.ts";
import { type DrainTimes, SocketDrain } from "./socket-drain.ts";
import { keepAlive, readOnlyWhileRead } from "./socket-flow.ts";
import { countArriving, inTurn, limitSocket, socketLimits } from "./websocket-limits.ts";
import { createProtocol } from "./websocket-protocol.ts";

/**
 * Serves graphql-transport-ws at `/graphql` of a listener, and answers all of its upgrade requests.
 * The returned function stops serving, and closes each socket when its operations are over.
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
    handleProtocols,
  });
  const drain = new SocketDrain(sockets.clients);

  function onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const status = refusal(request);
    if (status !== undefined) {
      const line = `HTTP/1.1 ${status} ${STATUS_CODES[status]}`;
      const answer = `${line}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;
      // Node has left the socket alone: an error that nobody hears would end the process, and a
      // client that does not close its side would keep the connection.
      socket.on("error", () => {}).end(answer, () => socket.destroy());
      return;
    }
    intake.readTurns.remove(socket);
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      readOnlyWhileRead(webSocket, socket);
      keepAlive(webSocket, onCut, heartbeats);
      serve(webSocket, socket, request);
    });
  }

  /** The status with which an upgrade is refused; undefined if it is not. */
  function refusal(request: IncomingMessage): number | undefined {
    if (!readTarget(request)) return 400;
    const misdirected = misdirection?.(request.headers);
    if (misdirected) return misdirected.status;
    if (request.url?.split("?", 1)[0] !== "/graphql") return 404;
    if (isCrossOrigin(request.headers, corsOrigins)) return 403;
    return drain.hasBegun ? 503 : undefined;
  }

  function serve(socket: WebSocket, stream: Duplex, request: IncomingMessage): void {
    const track = drain.add(socket);
    const arriving = countArriving(socket, stream);
    // `keepAlive` cuts each client that does not read, but until then many could hold the answers of
    // all the operations that a socket may have: beyond the budget those that hold most are cut.
    const watched = intake.budget.watch({
      bytes: () => socket.bufferedAmount + arriving.bytes,
      cut() {
        onCut("unread_memory");
        socket.terminate();
      },
    });
    limitSocket(socket, onCut);
    const session = openSession({ socket, stream, request, onCaller: arriving.takeLarge });
    const handleInTurn = inTurn(socket, stream, intake, session.handle);
    socket.on("message", (data) => {
      const handled = handleInTurn(String(data)).catch((error) => {
        if (socket.readyState !== socket.OPEN) return;
        log.error({ err: error }, "WebSocket message failed");
        socket.close(CloseCode.InternalServerError, "Internal server error");
      });
      track(handled);
    });
    socket.on("error", (error) => log.debug({ err: error }, "WebSocket error"));
    socket.once("close", () => {
      watched.leave();
      leaveInTurn(session.closed);
    });
  }

  server.on("upgrade", onUpgrade);
  return async (times) => {
    // Upgrades are still answered: Node would leave one on an open connection to nobody.
    await drain.drain(times);
    sockets.close();
  };
}

import type { Duplex } from "node:stream";
import { CloseCode } from "graphql-ws";
import type { WebSocket } from "ws";
import type { Heartbeats } from "../../live/heartbeats.ts";
import { createAllowance } from "../../net/allowance.ts";
import { excessOfJson } from "../../net/bounded-json.ts";
import type { OnCut } from "../../net/cut.ts";
import type { Intake } from "../../net/intake.ts";

/** Limits of one WebSocket. */
export const socketLimits = {
  /** Messages, pings and pongs from the client. */
  messages: { burst: 1_000, perSecond: 100 },
  /** Largest message until the caller is known: `connection_init` with a token. */
  initBytes: 32 * 1024,
  /** Frames of one message, and pieces of one frame. */
  fragments: 64,
  chunks: 4_096,
  /** Larger messages are decoded in a turn among the calls. */
  atOnceBytes: 4 * 1024,
};

/**
 * Terminates a socket whose client sends more messages than the limit. Stops reading from a client
 * while it does not read, since responses and pongs would pile up. Its own pongs are then not
 * received either, so `keepAlive` cuts a client that does not read for long.
 */
export function limitSocket(socket: WebSocket, connection: Duplex, onCut: OnCut): void {
  const maySend = createAllowance(socketLimits.messages);
  let isCut = false;
  const check = () => {
    if (isCut || socket.readyState === socket.CLOSED) return;
    if (!maySend()) {
      isCut = true;
      onCut("message_flood");
      // A close would wait for the client, and read on meanwhile.
      socket.terminate();
    } else if (connection.writableNeedDrain && !socket.isPaused) {
      socket.pause();
      resumeWhenRead(socket, connection);
    }
  };
  socket.on("message", check).on("ping", check).on("pong", check);
}

/** Reads on from a client, once it has read what waits for it. */
function resumeWhenRead(socket: WebSocket, connection: Duplex): void {
  if (connection.writableNeedDrain) connection.once("drain", () => socket.resume());
  else socket.resume();
}

/**
 * Pings a client as a silent stream gets its heartbeats, and cuts the connection if it has not
 * answered by the next ping: it has disappeared, or does not read.
 */
export function keepAlive(socket: WebSocket, onCut: OnCut, heartbeats: Heartbeats): void {
  let answered = true;
  socket.on("pong", () => {
    answered = true;
  });
  const beats = heartbeats.add(() => {
    if (!answered) {
      if (socket.bufferedAmount > 0) onCut("unread_answer");
      return socket.terminate();
    }
    answered = false;
    socket.ping();
  });
  socket.on("close", () => beats.stop());
}

/**
 * Counts what arrives on a socket, since `ws` does not say how much is there of a message that has
 * not arrived completely. Closes the socket for a message that is too large while its caller is not
 * known.
 */
export function countArriving(
  socket: WebSocket,
  connection: Duplex,
  isKnown: () => boolean,
): () => number {
  let bytes = 0;
  let pieceBytes = 0;
  // Before `ws` reads the piece, and emits the messages that end in it.
  connection.prependListener("data", (piece: Buffer) => {
    pieceBytes = piece.length;
    bytes += pieceBytes;
    if (bytes <= socketLimits.initBytes || isKnown()) return;
    // What `ws` does for a message beyond `maxPayload`.
    connection.removeAllListeners("data").resume();
    socket.close(messageTooBig);
    connection.end();
  });
  const ended = (data: { readonly length: number }) => {
    // What is left is a part of this piece.
    bytes = Math.min(Math.max(0, bytes - data.length - frameHeadBytes), pieceBytes);
  };
  socket.on("ping", ended).on("pong", ended);
  socket.on("message", (data) => ended(data as Buffer));
  return () => bytes;
}

/** Close code of RFC 6455, section 7.4.1. */
const messageTooBig = 1009;
/** Largest head of a frame with a mask (RFC 6455, section 5.2). */
const frameHeadBytes = 14;

/**
 * Handles messages in their order. A large one waits for a turn among the calls, while nothing more
 * is read; one that would hold more values than the limit closes the socket before it is parsed.
 */
export function inTurn(
  socket: WebSocket,
  connection: Duplex,
  intake: Intake,
  handle: (text: string) => void,
): (text: string) => void {
  let waiting = 0;
  let last = Promise.resolve();
  const handleLarge = async (text: string, before: Promise<void>) => {
    socket.pause();
    await before;
    await intake.turn(socket);
    waiting -= 1;
    if (waiting === 0) resumeWhenRead(socket, connection);
    if (socket.readyState !== socket.OPEN) return;
    const excess = excessOfJson(text);
    if (excess) socket.close(CloseCode.BadRequest, `the message ${excess}`);
    else handle(text);
  };
  return (text) => {
    if (text.length <= socketLimits.atOnceBytes && waiting === 0) return handle(text);
    waiting += 1;
    last = handleLarge(text, last);
  };
}

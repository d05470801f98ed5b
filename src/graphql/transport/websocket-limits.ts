import type { Duplex } from "node:stream";
import { CloseCode } from "graphql-ws";
import type { WebSocket } from "ws";
import { createAllowance } from "../../net/allowance.ts";
import { excessOfJson } from "../../net/bounded-json.ts";
import type { OnCut } from "../../net/cut.ts";
import type { Intake } from "../../net/intake.ts";
import { resumeWhenRead } from "./socket-flow.ts";

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

/** Terminates a socket whose client sends more messages than the limit. */
export function limitSocket(socket: WebSocket, onCut: OnCut): void {
  const maySend = createAllowance(socketLimits.messages);
  let isCut = false;
  const check = () => {
    if (isCut || socket.readyState === socket.CLOSED || maySend()) return;
    isCut = true;
    onCut("message_flood");
    // A close would wait for the client, and read on meanwhile.
    socket.terminate();
  };
  socket.on("message", check).on("ping", check).on("pong", check);
}

/** A message that has not arrived completely: `ws` does not say how much of it is there. */
export interface Arriving {
  readonly bytes: number;
  /** Lets the socket, whose caller is known, send messages of the full size. */
  takeLarge(): void;
}

/** Counts what arrives on a socket, and closes it for a message that is too large before `init`. */
export function countArriving(socket: WebSocket, connection: Duplex): Arriving {
  let bytes = 0;
  let pieceBytes = 0;
  let isLimited = true;
  // Before `ws` reads the piece, and emits the messages that end in it.
  connection.prependListener("data", (piece: Buffer) => {
    pieceBytes = piece.length;
    bytes += pieceBytes;
    if (!isLimited || bytes <= socketLimits.initBytes) return;
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
  return {
    get bytes() {
      return bytes;
    },
    takeLarge() {
      isLimited = false;
    },
  };
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
  handle: (text: string) => Promise<void>,
): (text: string) => Promise<void> {
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
    if (excess) return socket.close(CloseCode.BadRequest, `the message ${excess}`);
    // Not awaited here: an operation lasts longer than its message is handled.
    return { handled: handle(text) };
  };
  // Not async: the text would be kept until the operation that it begins is over.
  return (text) => {
    if (text.length <= socketLimits.atOnceBytes && waiting === 0) return handle(text);
    waiting += 1;
    const begun = handleLarge(text, last);
    last = begun.then(ignore, ignore);
    return begun.then((large) => large?.handled);
  };
}

const ignore = () => {};

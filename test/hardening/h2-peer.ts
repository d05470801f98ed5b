import { EventEmitter, once } from "node:events";
import net from "node:net";

/** Frame types (RFC 9113, section 6) that the attacks need. */
export const frameType = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
  /** An unassigned type: a server ignores it. */
  unknown: 0xbb,
} as const;

export const flag = { ack: 1, endStream: 1, endHeaders: 4 } as const;

/** Error codes (RFC 9113, section 7). */
export const errorCode = {
  refusedStream: 7,
  cancel: 8,
} as const;

/** The bytes of one frame. */
export function frame(
  type: number,
  flags: number,
  streamId: number,
  payload: Uint8Array = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

export function uint32(value: number): Buffer {
  const out = Buffer.alloc(4);
  out.writeUInt32BE(value);
  return out;
}

/** A SETTINGS payload of identifier and value pairs. */
export function settings(...pairs: [id: number, value: number][]): Buffer {
  return Buffer.concat(
    pairs.map(([id, value]) => Buffer.concat([Buffer.from([id >> 8, id & 255]), uint32(value)])),
  );
}

export const settingId = {
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
} as const;

/** A header block of literals without indexing (RFC 7541, section 6.2.2). */
export function headerBlock(fields: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(
    Object.entries(fields).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]),
  );
}

/** The header block of a call to a method of the gateway. */
export function callHeaders(path: string, more: Readonly<Record<string, string>> = {}): Buffer {
  return headerBlock({
    ":method": "POST",
    ":scheme": "http",
    ":path": path,
    ":authority": "localhost",
    "content-type": "application/json",
    ...more,
  });
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest >>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export type H2Peer = Awaited<ReturnType<typeof h2Peer>>;

interface PeerOptions {
  readonly settings?: Buffer;
  /** It does not acknowledge the server's settings. */
  readonly mute?: boolean;
  /** It does not end its side of the connection when the server ends its own. */
  readonly allowHalfOpen?: boolean;
}

/** An HTTP/2 client that has sent the preface, and sends frames as given, valid or not. */
export async function h2Peer(port: number, options: PeerOptions = {}) {
  const { allowHalfOpen = false } = options;
  const socket = net.connect({ port, host: "127.0.0.1", allowHalfOpen });
  const arrived = new EventEmitter().setMaxListeners(0);
  const frames: Frame[] = [];
  let isClosed = false;
  socket.on("error", () => {});
  let rest = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const length = rest.readUIntBE(0, 3);
      const [type = 0, flags = 0] = rest.subarray(3, 5);
      const streamId = rest.readUInt32BE(5);
      frames.push({ type, flags, streamId, payload: rest.subarray(9, 9 + length) });
      rest = rest.subarray(9 + length);
      if (type === frameType.settings && flags === 0 && !options.mute) {
        socket.write(frame(frameType.settings, flag.ack, 0));
      }
    }
    arrived.emit("frames");
  });
  const closed = new Promise<number | undefined>((resolve) => {
    socket.once("close", () => {
      isClosed = true;
      arrived.emit("frames");
      resolve(frames.findLast(({ type }) => type === frameType.goaway)?.payload.readUInt32BE(4));
    });
  });
  await once(socket, "connect");
  socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  socket.write(frame(frameType.settings, 0, 0, options.settings));
  return {
    ...{ socket, frames },
    /** Resolves when the connection is closed, with the error code of the last GOAWAY if one came. */
    closed,
    get isClosed() {
      return isClosed;
    },
    /** Writes frames; does nothing once the connection is closed. */
    send(...bytes: Uint8Array[]) {
      if (socket.writable) socket.write(Buffer.concat(bytes));
    },
    /** The first frame that fits, received before or later; rejects when the connection closes. */
    async received(fits: (frame: Frame) => boolean): Promise<Frame> {
      for (;;) {
        const found = frames.find(fits);
        if (found) return found;
        if (isClosed) throw new Error("the connection was closed");
        await once(arrived, "frames");
      }
    },
  };
}

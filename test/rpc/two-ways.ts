import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import type { Writable } from "node:stream";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Core } from "../../src/core/core.ts";
import { type ErrorCode, GatewayError } from "../../src/errors.ts";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import type { Identify } from "../../src/rpc/gate.ts";
import { caller, type Started, start } from "./start.ts";

/*
 * Sends the same requests to a fast path and to Connect, and describes responses, log records
 * and calls to the core in a form that can be compared. Left out: times, ids that are new in each
 * response, how HTTP frames a body, and the size that an error gives for a too large message.
 */

export type Version = keyof typeof senders;

export interface Sent {
  readonly path: string;
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Several pieces are sent in separate turns of the event loop. */
  readonly body: Uint8Array | readonly Uint8Array[];
}

export interface Came {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  readonly trailers: Record<string, string>;
}

export function errorOf(code: ErrorCode): GatewayError {
  return new GatewayError(code, `it is ${code}: 100 %, ü`, {
    reason: `BECAUSE_${code}`,
    retryAfterMs: 1_500,
    outcomeUnknown: { externalId: "order" },
    fields: [{ path: "a.b", message: "must not" }],
    upstream: create(UpstreamErrorSchema, { code: "x", message: "so it says", httpStatus: 400 }),
  });
}

const identify: Identify = async (headers) => {
  const shown = headers.get("authorization");
  if (shown === "nobody") {
    throw new GatewayError("UNAUTHENTICATED", "say who is calling", { reason: "NOBODY" });
  }
  if (shown === "denied") throw new GatewayError("PERMISSION_DENIED", "not that account");
  if (shown === "bug") throw new TypeError("a bug");
  return caller;
};

/** Two servers that differ only in the path that serves a request: a fast path, and Connect. */
export function twoWays(answers: Partial<Core>) {
  const servers: Started[] = [];
  const sessions = new Map<Started, http2.ClientHttp2Session>();

  return {
    async start() {
      const limits = { readMaxBytes: 10_000 };
      for (const fast of [true, false]) {
        const at = await start(answers, { identify, limits, fast });
        servers.push(at);
        sessions.set(at, http2.connect(at.url));
      }
    },
    async stop() {
      for (const session of sessions.values()) session.destroy();
      for (const server of servers) await server[Symbol.asyncDispose]();
    },
    /** The outcomes of a request: first by the fast path, then by Connect. */
    outcomes(version: Version, sent: Sent) {
      return this.both(async (at, session) =>
        understood(await senders[version](at, session, sent)),
      );
    },
    both<T>(act: (at: Started, session: http2.ClientHttp2Session) => Promise<T>) {
      return Promise.all(
        servers.map(async (at) => {
          const [calls, records] = [at.calls.length, at.records.length];
          const came = await act(at, sessions.get(at) as http2.ClientHttp2Session);
          return { came, ...traceOf(at, calls, records) };
        }),
      );
    },
  };
}

const senders = {
  "1.1": async (
    at: Started,
    _: http2.ClientHttp2Session,
    { path, method = "POST", headers, body }: Sent,
  ): Promise<Came> => {
    const request = http.request(at.url + path, { method, headers, agent: false });
    await send(request, body);
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    const chunks = await response.toArray();
    return {
      status: response.statusCode ?? 0,
      headers: flat(response.headers),
      body: Buffer.concat(chunks),
      trailers: flat(response.trailers),
    };
  },
  "2": async (
    _: Started,
    session: http2.ClientHttp2Session,
    { path, method = "POST", headers, body }: Sent,
  ): Promise<Came> => {
    const stream = session.request({ ":path": path, ":method": method, ...headers });
    let trailers: http2.IncomingHttpHeaders = {};
    stream.on("trailers", (came) => (trailers = came));
    await send(stream, body);
    const [came] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
    const chunks = await stream.toArray();
    return {
      status: Number(came[":status"]),
      headers: flat(came),
      body: Buffer.concat(chunks),
      trailers: flat(trailers),
    };
  },
};

async function send(request: Writable, body: Sent["body"]): Promise<void> {
  if (body instanceof Uint8Array) {
    request.end(body);
    return;
  }
  for (const piece of body) {
    await new Promise((resolve) => request.write(piece, resolve));
    await new Promise(setImmediate);
  }
  request.end();
}

function flat(headers: http.IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

const ofFraming = new Set([
  ...["connection", "keep-alive", "date", "transfer-encoding", "content-length", ":status"],
]);

const trailersOfErrors = [
  "grpc-status",
  "grpc-message",
  "grpc-status-details-bin",
  "grpc-retry-pushback-ms",
  "retry-after",
];

/** A response as its client understands it. */
function understood({ status, headers, body, trailers }: Came) {
  const rest = Object.entries(headers).filter(([name]) => !ofFraming.has(name));
  const seen = Object.fromEntries(rest);
  if (!/^[a-z-]+-1$/.test(seen["x-request-id"] ?? "")) delete seen["x-request-id"];
  // Without a body, gRPC's status may be among the headers.
  for (const name of trailersOfErrors) {
    const value = seen[name];
    if (value === undefined) continue;
    trailers = { ...trailers, [name]: value };
    delete seen[name];
  }
  return { status, headers: seen, body: bodyOf(headers, body), trailers: readable(trailers) };
}

function bodyOf(headers: Record<string, string>, body: Buffer): unknown {
  const plain = unpacked(headers["content-encoding"], body);
  const type = headers["content-type"] ?? "";
  if (type === "application/json") return JSON.parse(withoutSize(plain.toString()));
  if (!/^application\/(?:grpc|connect\+)/.test(type)) return plain.toString("hex");
  const envelopes: unknown[] = [];
  for (let at = 0; at < plain.length; ) {
    const [flags, end] = [plain.readUInt8(at), at + 5 + plain.readUInt32BE(at + 1)];
    const data = unpacked(
      flags & 1 ? (headers["grpc-encoding"] ?? headers["connect-content-encoding"]) : undefined,
      plain.subarray(at + 5, end),
    );
    if (flags & 0x80) envelopes.push([flags, readable(linesOf(data))]);
    else if (flags & 2) envelopes.push([flags, JSON.parse(withoutSize(data.toString()))]);
    else envelopes.push([flags, data.toString("hex")]);
    at = end;
  }
  return envelopes;
}

function unpacked(encoding: string | undefined, data: Buffer): Buffer {
  if (encoding === "gzip") return gunzipSync(data);
  return encoding === "br" ? brotliDecompressSync(data) : data;
}

function linesOf(data: Buffer): Record<string, string> {
  const lines = data.toString().split("\r\n").filter(Boolean);
  return Object.fromEntries(
    lines.map((line) => /^(.*?): (.*)$/.exec(line)?.slice(1) as [string, string]).sort(),
  );
}

function withoutSize(text: string): string {
  return text.replace(/message size \d+ is larger/, "message size is larger");
}

function readable({ "grpc-status-details-bin": details, ...trailers }: Record<string, string>) {
  const message = decodeURIComponent(trailers["grpc-message"] ?? "");
  const saysSize = message.includes("readMaxBytes");
  return {
    ...trailers,
    "grpc-message": withoutSize(message),
    details: saysSize ? details !== undefined : details,
  };
}

export const json = (value: unknown) => Buffer.from(JSON.stringify(value));
export const binary = <D extends DescMessage>(schema: D, init: MessageInitShape<D>) =>
  Buffer.from(toBinary(schema, create(schema, init)));
export const envelope = (data: Uint8Array, flags = 0, length = data.length) => {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, data]);
};
export const enveloped = <D extends DescMessage>(schema: D, init: MessageInitShape<D>) =>
  envelope(binary(schema, init));

/** The calls and log records that a request caused, without ids and times. */
function traceOf(at: Started, calls: number, records: number) {
  return {
    calls: at.calls.slice(calls).map(({ method, request, call }) => ({
      method,
      request,
      caller: call.caller,
      key: call.idempotencyKey,
      transport: call.transport,
      hasDeadline: call.deadlineMs !== undefined,
      // With Connect, the signal of a stream also aborts when the stream ends.
      aborted: !/^(?:watch|stream)/.test(method) && call.signal.aborted,
    })),
    records: at.records
      .slice(records)
      .map(({ level, message, method, code, reason, caller, protocol }) => ({
        ...{ level, message, method, code, reason, caller, protocol },
      })),
  };
}

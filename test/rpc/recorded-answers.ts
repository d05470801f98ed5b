import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import type { Writable } from "node:stream";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Core } from "../../src/core/core.ts";
import { statusCodes } from "../../src/rpc/errors.ts";
import type { RpcLimits } from "../../src/rpc/methods.ts";
import { identifying, type Outcomes, recorded } from "../recorded.ts";
import { caller, envelope, type Started, start } from "./start.ts";

/*
 * Compares answers with those that Connect's own handlers gave to the same requests, before the
 * gateway read and wrote their protocols itself: a response, log records and calls to the core. When
 * the two were the same to a client, the gateway's were recorded as it sends them. Left out: times,
 * ids that are new in each response, how HTTP frames a body, and the bytes of a compression.
 *
 * `RECORD_ANSWERS=true npm run test:only test/rpc/unary-path.test.ts` records today's answers
 * instead, for requests that are added or answered otherwise on purpose.
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

/** A server, and what was recorded of it in `test/fixtures/rpc`. */
export function recordedAnswers(
  name: string,
  answers: Partial<Core>,
  limits: Partial<RpcLimits> = {},
) {
  const known = recorded(`rpc/${name}`);
  let at: Started;
  let session: http2.ClientHttp2Session;

  return {
    async start() {
      const identify = identifying(caller);
      at = await start(answers, { identify, limits: { readMaxBytes: 10_000, ...limits } });
      session = http2.connect(at.url);
    },
    async stop() {
      session.destroy();
      await at[Symbol.asyncDispose]();
      known.save();
    },
    /** Compares what comes of a group of requests, by default to one path, with what is recorded. */
    async compare(version: Version, type: string, path: string, requests: Requests) {
      const outcomes: Outcomes = {};
      for (const [name, request] of Object.entries(requests)) {
        const act = async () =>
          comparable(await senders[version](at, session, { path, ...request }));
        outcomes[name] = await this.traced(act);
      }
      known.check(`${type} ${version}`, outcomes);
    },
    async traced(act: (at: Started, session: http2.ClientHttp2Session) => Promise<unknown>) {
      const [calls, logged] = [at.calls.length, at.records.length];
      const came = await act(at, session);
      return { came, ...traceOf(at, calls, logged) };
    },
    check: known.check,
  };
}

/** Each sends a request over its version of HTTP. */
export const senders = {
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
    if (body.length > 0) request.end(body);
    else request.end();
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

/** A response without what differs each time. */
function comparable({ status, headers, body, trailers }: Came) {
  const rest = Object.entries(headers).filter(([name]) => !ofFraming.has(name));
  const seen = Object.fromEntries(rest);
  if (!/^[a-z-]+-1$/.test(seen["x-request-id"] ?? "")) delete seen["x-request-id"];
  return { status, headers: seen, body: textsOf(headers, body), trailers };
}

/** A body as text, or what its envelopes hold, each without its compression. */
function textsOf(headers: Record<string, string>, body: Buffer): unknown {
  const whole = unpacked(headers["content-encoding"], body);
  if (!/^application\/(?:grpc|connect\+)/.test(headers["content-type"] ?? "")) return textOf(whole);
  const encoding = headers["grpc-encoding"] ?? headers["connect-content-encoding"];
  const envelopes: unknown[] = [];
  for (let at = 0; at < whole.length; ) {
    const [flags, end] = [whole.readUInt8(at), at + 5 + whole.readUInt32BE(at + 1)];
    const data = whole.subarray(at + 5, end);
    envelopes.push([flags, textOf(flags & 1 ? unpacked(encoding, data) : data)]);
    at = end;
  }
  return envelopes;
}

const textOf = (data: Buffer) => data.toString("latin1");

function unpacked(encoding: string | undefined, data: Buffer): Buffer {
  if (encoding === "gzip") return gunzipSync(data);
  return encoding === "br" ? brotliDecompressSync(data) : data;
}

export const json = (value: unknown) => Buffer.from(JSON.stringify(value));
export const binary = <D extends DescMessage>(schema: D, init: MessageInitShape<D>) =>
  Buffer.from(toBinary(schema, create(schema, init)));

export const bothVersions: readonly Version[] = ["1.1", "2"];
/** Media types, and the versions of HTTP over which they are compared. */
export type Formats = Readonly<Record<string, readonly Version[]>>;

export type Requests = Record<string, Omit<Sent, "path"> & { readonly path?: string }>;

/** How a method is called. */
export interface Way {
  readonly path: string;
  readonly type: string;
  readonly isGrpc: boolean;
  readonly isStream: boolean;
  /** A request, without an envelope, in which the method finds how it has to behave. */
  readonly messageOf: (externalId: string) => Buffer;
  /** The codes with which it can be told to fail; default: all. */
  readonly codes?: readonly string[];
}

/** Good and bad requests of every kind of call. */
export function requestsOf({
  path,
  type,
  isGrpc,
  isStream,
  messageOf,
  codes = Object.keys(statusCodes),
}: Way): Requests {
  const headers = { "content-type": type };
  const enclosed = isGrpc || isStream ? envelope : (data: Uint8Array) => data;
  const of = (externalId: string) => enclosed(messageOf(externalId));
  const known = of("order-1");
  const ofBody = (body: Sent["body"]) => ({ headers, body });
  const withHeaders = (more: Record<string, string>, body: Sent["body"] = known) => ({
    headers: { ...headers, ...more },
    body,
  });
  const prefix = isGrpc ? "grpc-" : isStream ? "connect-" : "";
  const timeoutHeader = isGrpc ? "grpc-timeout" : "connect-timeout-ms";
  const encodingHeader = isGrpc ? "grpc-encoding" : `${prefix}content-encoding`;
  const acceptHeader = `${prefix}accept-encoding`;
  const packed = (encoding: "gzip" | "br", message: Buffer) => {
    const data = encoding === "gzip" ? gzipSync(message) : brotliCompressSync(message);
    const body = isGrpc || isStream ? envelope(data, 1) : data;
    return withHeaders({ [encodingHeader]: encoding }, body);
  };
  const texts = {
    "JSON null": "null",
    "JSON list": "[]",
    "JSON with a wrong type": '{"externalId":4111111111111111}',
    "JSON with an unknown key": '{"externalid":"x"}',
    "JSON with both names": '{"externalId":"x","external_id":"y"}',
    "JSON with a key twice": '{"externalId":"x","externalId":"y"}',
    "JSON cut off": '{"externalId":"x"',
    "JSON with a mark": '\ufeff{"externalId":"x"}',
    "JSON with a replacement character": '{"external_id":"\ufffd"}',
  };
  const bodies = {
    "no body": Buffer.alloc(0),
    "one byte": Buffer.from([8]),
    text: Buffer.from("hello, here is no message at all"),
    zeros: Buffer.alloc(64),
    "a message without its envelope": messageOf("order-1"),
    "JSON that is not UTF-8": enclosed(Buffer.from('{"external_id":"\xff"}', "latin1")),
    "UTF-8 that is none": enclosed(Buffer.from([0x0a, 0x02, 0xc3, 0x28])),
    "too large": enclosed(Buffer.alloc(20_000, 0x20)),
    "an envelope that says more": envelope(Buffer.from([1, 2]), 0, 9),
    "an envelope that says less": envelope(messageOf("x"), 0, 1),
    "an envelope that says too much": envelope(Buffer.from([1, 2]), 0, 1_000_000),
    "an envelope of nothing": envelope(Buffer.alloc(0)),
    "two envelopes": Buffer.concat([envelope(Buffer.alloc(0)), envelope(Buffer.alloc(0))]),
    "an envelope said to be compressed": envelope(Buffer.from([1]), 1),
    "an envelope of trailers": envelope(Buffer.from("a: b\r\n"), 0x80),
    "an envelope with odd flags": envelope(Buffer.alloc(0), 0x42),
    "an unknown field": enclosed(
      Buffer.concat([messageOf("order-1"), Buffer.from([0x98, 0x06, 0x01])]),
    ),
  };
  const errors = codes.map((code) => [`error ${code}`, ofBody(of(`error:${code}`))]);
  return {
    "an ordinary request": ofBody(known),
    "a large answer": ofBody(of("large")),
    "a large answer, gzip": withHeaders({ [acceptHeader]: "gzip, br" }, of("large")),
    "a large answer, br": withHeaders({ [acceptHeader]: "deflate,br" }, of("large")),
    "a small answer, gzip": withHeaders({ [acceptHeader]: "gzip" }),
    "an error, gzip": withHeaders({ [acceptHeader]: "gzip" }, of("error:NOT_FOUND")),
    "no compression known": withHeaders({ [acceptHeader]: "zstd" }, of("large")),
    "compression of bodies asked for": withHeaders({ "accept-encoding": "gzip" }, of("large")),
    identity: withHeaders({ [encodingHeader]: "identity" }),
    "gzip that is none": withHeaders({ [encodingHeader]: "gzip" }),
    gzip: packed("gzip", messageOf("order-1")),
    br: packed("br", messageOf("order-1")),
    "too large, gzip": packed("gzip", Buffer.alloc(20_000, 0x20)),
    "too large, br": packed("br", Buffer.alloc(20_000, 0x20)),
    "unknown compression": withHeaders({ [encodingHeader]: "zstd" }),
    "an id of its own": withHeaders({ "x-request-id": "trace-1" }),
    "an id that is none": withHeaders({ "x-request-id": "a b" }),
    "an id like a card number": withHeaders({ "x-request-id": "4111111111111111" }),
    "a key": withHeaders({ "idempotency-key": "once" }),
    "a key of nothing": withHeaders({ "idempotency-key": "" }),
    nobody: withHeaders({ authorization: "nobody" }),
    "nobody, and no message": withHeaders({ authorization: "nobody" }, Buffer.from([1])),
    denied: withHeaders({ authorization: "denied" }),
    "a caller of Ukrainian": withHeaders({ "accept-language": "uk" }, of("error:NOT_FOUND")),
    "nobody, in Ukrainian": withHeaders({ authorization: "nobody", "accept-language": "uk-UA" }),
    "a bug in the credentials": withHeaders({ authorization: "bug" }),
    "a bug": ofBody(of("bug:4111111111111111")),
    "a minute's time": withHeaders({ [timeoutHeader]: isGrpc ? "1M" : "60000" }),
    "more time than there is": withHeaders({
      [timeoutHeader]: isGrpc ? "99999999H" : "9999999999",
    }),
    "a time-out that is none": withHeaders({ [timeoutHeader]: "soon" }),
    "a negative time-out": withHeaders({ [timeoutHeader]: "-1" }),
    "another method": { method: "PUT", ...ofBody(known) },
    "an unknown path": { path: `${path}s`, ...ofBody(known) },
    "a path with a query": { path: `${path}?a=b`, ...ofBody(known) },
    "a path that is not UTF-8": { path: `${path}?a=%ff`, ...ofBody(known) },
    "another type": { headers: { "content-type": "text/plain" }, body: known },
    "a type in capitals": { headers: { "content-type": type.toUpperCase() }, body: known },
    ...Object.fromEntries(errors),
    ...Object.fromEntries(
      Object.entries(texts).map(([name, text]) => [name, ofBody(enclosed(Buffer.from(text)))]),
    ),
    ...Object.fromEntries(Object.entries(bodies).map(([name, body]) => [name, ofBody(body)])),
  };
}

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
      // That of a stream may abort when the stream ends.
      aborted: !/^(?:watch|stream)/.test(method) && call.signal.aborted,
    })),
    records: at.records
      .slice(records)
      .map(({ level, message, method, code, reason, caller, protocol }) => ({
        ...{ level, message, method, code, reason, caller, protocol },
      })),
  };
}

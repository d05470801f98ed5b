import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { create, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Call } from "../../src/core/core.ts";
import { type ErrorCode, errorOfAbort, GatewayError } from "../../src/errors.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import {
  type WatchPaymentRequest,
  WatchPaymentRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import type { WatchPayoutRequest } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { statusCodes } from "../../src/rpc/errors.ts";
import { streamRequestOf } from "../../src/rpc/stream-protocols.ts";
import { until } from "../until.ts";
import { binary, envelope, errorOf, json, type Sent, twoWays, type Version } from "./two-ways.ts";

/* `two-ways.ts` describes what is compared, and what is not. */

const watchPayment = "/payments.v1.PaymentService/WatchPayment";
const watchPayout = "/payments.v1.PayoutService/WatchPayout";
const streamEvents = "/payments.v1.EventService/StreamEvents";

const event = (cursor: string, padding = 0) =>
  create(EventSchema, { cursor, externalId: "é€𝄞".padEnd(padding, "x") });

/** Behaves as the external id says, for example `error:<code>`, `late:<code>` or `none`. */
async function* watch({ externalId }: { externalId: string }, call: Call): AsyncGenerator<Event> {
  const [what, name = ""] = externalId.split(":");
  if (what === "error") throw errorOf(name as ErrorCode);
  if (what === "connect") throw new ConnectError("as it is", Code.DataLoss);
  if (what === "bug") throw new TypeError(`no property of ${name}`);
  if (what !== "unopened") call.onOpen?.(undefined);
  if (what === "none") return;
  yield event("c1");
  if (what === "large") yield event("c2", 5_000);
  if (what === "late") {
    const { code, message, details } = errorOf(name as ErrorCode);
    throw new GatewayError(code, message, { ...details, resumeCursor: "c1" });
  }
  if (what === "long-error") {
    const fields = Array.from({ length: 20 }, (_, i) => ({
      path: `f${i}`,
      message: "m".repeat(200),
    }));
    throw new GatewayError("INVALID_ARGUMENT", "too many", { fields });
  }
  if (what === "late-bug") throw new TypeError(`no property of ${name}`);
  if (what === "until-aborted" || what === "until-cut") {
    if (!call.signal.aborted) await once(call.signal, "abort");
    if (what === "until-cut") throw errorOfAbort(call.signal);
    return;
  }
  yield event("c3");
}

const two = twoWays({
  watchPayment: (request: WatchPaymentRequest, call) => watch(request, call),
  watchPayout: (request: WatchPayoutRequest, call) => watch(request, call),
  streamEvents: (_, call) => watch({ externalId: "" }, call),
});
before(two.start);
after(two.stop);

interface Format {
  readonly type: string;
  readonly http: readonly Version[];
  readonly isJson: boolean;
  readonly protocol: "connect" | "grpc";
}

const both = ["1.1", "2"] as const;
const ofConnect = { http: both, protocol: "connect" } as const;
const ofGrpc = { http: both, protocol: "grpc" } as const;
const formats: Format[] = [
  { type: "application/connect+json", ...ofConnect, isJson: true },
  { type: "application/connect+json; charset=utf-8", ...ofConnect, isJson: true },
  { type: "application/connect+proto", ...ofConnect, isJson: false },
  { type: "application/grpc", ...ofGrpc, isJson: false },
  { type: "application/grpc+proto", ...ofGrpc, http: ["2"], isJson: false },
  { type: "application/grpc+json", ...ofGrpc, http: ["2"], isJson: true },
  { type: "application/grpc-web", ...ofGrpc, isJson: false },
  { type: "application/grpc-web+proto", ...ofGrpc, isJson: false },
  { type: "application/grpc-web+json", ...ofGrpc, http: ["1.1"], isJson: true },
];

type Requests = Record<string, Omit<Sent, "path"> & { readonly path?: string }>;

function messageOf(format: Pick<Format, "isJson">, externalId: string): Buffer {
  const message = create(WatchPaymentRequestSchema, { externalId });
  return format.isJson
    ? json(toJson(WatchPaymentRequestSchema, message))
    : binary(WatchPaymentRequestSchema, message);
}

function requestsOf(format: Format): Requests {
  const { type, protocol } = format;
  const headers = { "content-type": type };
  const of = (externalId: string) => envelope(messageOf(format, externalId));
  const known = of("order-1");
  const ofBody = (body: Sent["body"]) => ({ headers, body });
  const withHeaders = (more: Record<string, string>, body: Sent["body"] = known) => ({
    headers: { ...headers, ...more },
    body,
  });
  const isGrpc = protocol === "grpc";
  const timeoutHeader = isGrpc ? "grpc-timeout" : "connect-timeout-ms";
  const encodingHeader = isGrpc ? "grpc-encoding" : "connect-content-encoding";
  const acceptHeader = isGrpc ? "grpc-accept-encoding" : "connect-accept-encoding";
  const soon = isGrpc ? "30m" : "30";
  const errors = Object.keys(statusCodes).flatMap((code) => [
    [`error ${code}`, ofBody(of(`error:${code}`))],
    [`error ${code} behind an event`, ofBody(of(`late:${code}`))],
  ]);
  const text = (text: string) => envelope(Buffer.from(text));
  const bodies = [
    ["no body", Buffer.alloc(0)],
    ["one byte", Buffer.from([8])],
    ["text", Buffer.from("hello, here is no message at all")],
    ["zeros", Buffer.alloc(64)],
    ["a message without its envelope", messageOf(format, "order-1")],
    ["JSON null", text("null")],
    ["JSON list", text("[]")],
    ["JSON with a wrong type", text('{"externalId":4111111111111111}')],
    ["JSON with an unknown key", text('{"externalid":"x"}')],
    ["JSON with both names", text('{"externalId":"x","external_id":"y"}')],
    ["JSON with a key twice", text('{"externalId":"x","externalId":"y"}')],
    ["JSON cut off", text('{"externalId":"x"')],
    ["JSON with a mark", text('\ufeff{"externalId":"x"}')],
    ["JSON that is not UTF-8", envelope(Buffer.from('{"external_id":"\xff"}', "latin1"))],
    ["UTF-8 that is none", envelope(Buffer.from([0x0a, 0x02, 0xc3, 0x28]))],
    ["too large", envelope(Buffer.alloc(20_000, 0x20))],
    ["the largest", envelope(Buffer.concat([known.subarray(5), Buffer.alloc(9_000, 0x20)]))],
    ["an envelope that says more", envelope(Buffer.from([1, 2]), 0, 9)],
    ["an envelope that says less", envelope(messageOf(format, "x"), 0, 1)],
    ["an envelope that says too much", envelope(Buffer.from([1, 2]), 0, 1_000_000)],
    ["an envelope of nothing", envelope(Buffer.alloc(0))],
    ["two envelopes", Buffer.concat([known, known])],
    ["a message and its end", Buffer.concat([known, envelope(Buffer.from("{}"), 2)])],
    ["an envelope said to be compressed", envelope(Buffer.from([1]), 1)],
    ["an envelope of trailers", envelope(Buffer.from("a: b\r\n"), 0x80)],
    ["an envelope with odd flags", envelope(Buffer.alloc(0), 0x42)],
    ["an unknown field", envelope(Buffer.concat([known.subarray(5), Buffer.from([0x98, 6, 1])]))],
    ["two pieces", [known.subarray(0, 3), known.subarray(3)]],
    ["three pieces", [known.subarray(0, 5), known.subarray(5, 8), known.subarray(8)]],
  ] as const;
  return {
    "a watch": ofBody(known),
    "a watch of a payout": { path: watchPayout, ...ofBody(known) },
    "all events": {
      path: streamEvents,
      ...ofBody(envelope(format.isJson ? json({}) : Buffer.of())),
    },
    "a watch that opens with its first event": ofBody(of("unopened")),
    "a watch without events": ofBody(of("none")),
    "a large event": ofBody(of("large")),
    "a large event, gzip": withHeaders({ [acceptHeader]: "gzip, br" }, of("large")),
    "a large event, br": withHeaders({ [acceptHeader]: "deflate,br" }, of("large")),
    "a small event, gzip": withHeaders({ [acceptHeader]: "gzip" }),
    "an error, gzip": withHeaders({ [acceptHeader]: "gzip" }, of("error:NOT_FOUND")),
    "a long error, gzip": withHeaders({ [acceptHeader]: "gzip" }, of("long-error")),
    "no compression known": withHeaders({ [acceptHeader]: "zstd" }, of("large")),
    "compression of bodies asked for": withHeaders({ "accept-encoding": "gzip" }, of("large")),
    identity: withHeaders({ [encodingHeader]: "identity" }),
    "gzip that is none": withHeaders({ [encodingHeader]: "gzip" }),
    gzip: withHeaders({ [encodingHeader]: "gzip" }, envelope(gzipSync(known.subarray(5)), 1)),
    "unknown compression": withHeaders({ [encodingHeader]: "zstd" }),
    "an id of its own": withHeaders({ "x-request-id": "trace-1" }),
    "an id that is none": withHeaders({ "x-request-id": "a b" }),
    "an id like a card number": withHeaders({ "x-request-id": "4111111111111111" }),
    "a key": withHeaders({ "idempotency-key": "once" }),
    "a key of nothing": withHeaders({ "idempotency-key": "" }),
    nobody: withHeaders({ authorization: "nobody" }),
    "nobody, and no message": withHeaders({ authorization: "nobody" }, Buffer.from([1])),
    denied: withHeaders({ authorization: "denied" }),
    "a bug in the credentials": withHeaders({ authorization: "bug" }),
    "a bug": ofBody(of("bug:4111111111111111")),
    "a bug behind an event": ofBody(of("late-bug:4111111111111111")),
    "a long error": ofBody(of("long-error")),
    "an error of Connect": ofBody(of("connect")),
    "a minute's time": withHeaders({ [timeoutHeader]: isGrpc ? "1M" : "60000" }),
    "more time than there is": withHeaders({
      [timeoutHeader]: isGrpc ? "99999999H" : "9999999999",
    }),
    "a time-out that is none": withHeaders({ [timeoutHeader]: "soon" }),
    "a negative time-out": withHeaders({ [timeoutHeader]: "-1" }),
    "a deadline": withHeaders({ [timeoutHeader]: soon }, of("until-cut")),
    "a deadline of a watch that just stops": withHeaders(
      { [timeoutHeader]: soon },
      of("until-aborted"),
    ),
    "no time at all": withHeaders({ [timeoutHeader]: isGrpc ? "0m" : "0" }, of("until-cut")),
    "another method": { method: "PUT", ...ofBody(known) },
    "an unknown path": { path: `${watchPayment}s`, ...ofBody(known) },
    "a path with a query": { path: `${watchPayment}?a=b`, ...ofBody(known) },
    "a path that is not UTF-8": { path: `${watchPayment}?a=%ff`, ...ofBody(known) },
    "another type": { headers: { "content-type": "text/plain" }, body: known },
    "a type of unary calls": { headers: { "content-type": "application/json" }, body: known },
    "a type in capitals": { headers: { "content-type": type.toUpperCase() }, body: known },
    ...Object.fromEntries(errors),
    ...Object.fromEntries(bodies.map(([name, body]) => [name, ofBody(body)])),
  };
}

let compared = 0;
for (const format of formats) {
  for (const version of format.http) {
    test(`the fast path and Connect answer ${format.type} over HTTP/${version} alike`, async () => {
      for (const [name, request] of Object.entries(requestsOf(format))) {
        const sent = { path: watchPayment, ...request };
        const [mine, its] = await two.outcomes(version, sent);
        assert.deepEqual(mine, its, name);
        compared += 1;
      }
    });
  }
}

test("at least 1,000 requests were compared", () => {
  assert.ok(compared >= 1_000, String(compared));
});

for (const format of formats) {
  for (const version of format.http) {
    if (format.type === "application/grpc" && version === "1.1") continue;
    test(`the fast path and Connect treat a leaving client alike, by ${format.type} over HTTP/${version}`, async () => {
      const body = envelope(messageOf(format, "until-cut"));
      const headers = { "content-type": format.type };
      const [mine, its] = await two.both(async (at, session) => {
        const [calls, records] = [at.calls.length, at.records.length];
        const method = "POST";
        if (version === "2") {
          const stream = session.request({ ":path": watchPayment, ":method": method, ...headers });
          stream.end(body);
          await once(stream, "data");
          stream.close();
        } else {
          const request = http.request(at.url + watchPayment, { method, headers, agent: false });
          request.on("error", () => undefined).end(body);
          const [response] = (await once(request, "response")) as [http.IncomingMessage];
          response.on("error", () => undefined);
          await once(response, "data");
          request.destroy();
        }
        await until(() => at.records.length > records);
        assert.equal(at.records.at(-1)?.code, "CANCELLED");
        assert.equal(at.calls[calls]?.call.signal.aborted, true);
      });
      assert.deepEqual(mine, its);
    });
  }
}

test("the fast path takes ordinary requests and leaves unusual ones to Connect", () => {
  for (const { type, http } of formats) {
    for (const version of http) {
      const isOdd = type.includes(";") || (type === "application/grpc" && version === "1.1");
      const request = streamRequestOf({ "content-type": type }, version);
      assert.equal(request === undefined, isOdd, `${type} ${version}`);
    }
  }
  const grpc = { "content-type": "application/grpc" };
  assert.equal(streamRequestOf({ ...grpc, "grpc-encoding": "gzip" }, "2"), undefined);
  assert.equal(streamRequestOf({ ...grpc, "grpc-accept-encoding": "br" }, "2"), undefined);
  assert.ok(streamRequestOf({ ...grpc, "grpc-accept-encoding": "gzip" }, "2"));
});

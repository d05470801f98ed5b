import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ErrorCode } from "../../src/errors.ts";
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
  type GetPaymentRequest,
  GetPaymentRequestSchema,
  GetPaymentResponseSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { statusCodes } from "../../src/rpc/errors.ts";
import { protocolOf } from "../../src/rpc/unary-protocols.ts";
import { answeredPayment } from "../core/answers.ts";
import {
  binary,
  envelope,
  enveloped,
  errorOf,
  json,
  type Sent,
  twoWays,
  type Version,
} from "./two-ways.ts";

/*
 * Sends the same requests to the fast path and to Connect: responses, log records and calls to
 * the core must be the same. Not compared: times, ids that are new in each response, how HTTP
 * frames a body, and the size that an error gives for a message that is too large.
 */

const getPayment = "/payments.v1.PaymentService/GetPayment";
const createPayment = "/payments.v1.PaymentService/CreatePayment";

/** Behaves as the external id says, for example `error:<code>` or `large`. */
const answers = {
  getPayment: async ({ externalId }: GetPaymentRequest) => {
    const [what, name = ""] = externalId.split(":");
    if (what === "error") throw errorOf(name as ErrorCode);
    if (what === "connect") throw new ConnectError("as it is", Code.DataLoss);
    if (what === "bug") throw new TypeError(`no property of ${name}`);
    const text = "x".repeat(what === "large" ? 5_000 : 1);
    return create(GetPaymentResponseSchema, {
      cursor: "c1",
      payment: { externalId: `${what} ${text}` },
    });
  },
  createPayment: async ({ externalId, amount }: CreatePaymentRequest) =>
    answeredPayment({ externalId, details: { amount, description: "é€𝄞" } }),
};

interface Format {
  readonly type: string;
  readonly http: readonly Version[];
  readonly encode: <D extends DescMessage>(schema: D, init: MessageInitShape<D>) => Uint8Array;
  readonly grpc: boolean;
}

const two = twoWays(answers);
before(two.start);
after(two.stop);

const both = ["1.1", "2"] as const;
const formats: Format[] = [
  { type: "application/json", http: both, encode: (_, init) => json(init), grpc: false },
  { type: "application/json; charset=utf-8", http: ["2"], encode: (_, i) => json(i), grpc: false },
  { type: "application/proto", http: both, encode: binary, grpc: false },
  { type: "application/grpc", http: both, encode: enveloped, grpc: true },
  { type: "application/grpc+proto", http: ["2"], encode: enveloped, grpc: true },
  { type: "application/grpc-web", http: ["1.1"], encode: enveloped, grpc: true },
  { type: "application/grpc-web+proto", http: both, encode: enveloped, grpc: true },
];

type Requests = Record<string, Omit<Sent, "path"> & { readonly path?: string }>;

function requestsOf({ type, encode, grpc }: Format): Requests {
  const headers = { "content-type": type };
  const get = (externalId: string) => encode(GetPaymentRequestSchema, { externalId });
  const known = get("order-1");
  const withHeaders = (more: Record<string, string>, body: Uint8Array = known) => ({
    headers: { ...headers, ...more },
    body,
  });
  const ofBody = (body: Uint8Array) => ({ headers, body });
  const timeoutHeader = grpc ? "grpc-timeout" : "connect-timeout-ms";
  const encodingHeader = grpc ? "grpc-encoding" : "content-encoding";
  const acceptHeader = grpc ? "grpc-accept-encoding" : "accept-encoding";
  const create = {
    path: createPayment,
    ...ofBody(encode(CreatePaymentRequestSchema, { externalId: "новый", amount: "10.10" })),
  };
  const errors = Object.keys(statusCodes).map((code) => [
    `error ${code}`,
    ofBody(get(`error:${code}`)),
  ]);
  const bodies = [
    ["no body", Buffer.alloc(0)],
    ["one byte", Buffer.from([8])],
    ["text", Buffer.from("hello, here is no message at all")],
    ["zeros", Buffer.alloc(64)],
    ["JSON null", Buffer.from("null")],
    ["JSON list", Buffer.from("[]")],
    ["JSON with a wrong type", Buffer.from('{"externalId":4111111111111111}')],
    ["JSON with an unknown key", Buffer.from('{"externalid":"x"}')],
    ["JSON with both names", Buffer.from('{"externalId":"x","external_id":"y"}')],
    ["JSON with a key twice", Buffer.from('{"externalId":"x","externalId":"y"}')],
    ["JSON cut off", Buffer.from('{"externalId":"x"')],
    ["JSON with a mark", Buffer.from('\ufeff{"externalId":"x"}')],
    ["JSON that is not UTF-8", Buffer.from('{"external_id":"\xff"}', "latin1")],
    ["JSON with a replacement character", Buffer.from('{"external_id":"\ufffd"}')],
    ["UTF-8 that is none", Buffer.from([0x0a, 0x02, 0xc3, 0x28])],
    ["too large", Buffer.alloc(20_000, 0x20)],
    ["an envelope that says more", envelope(Buffer.from([1, 2]), 0, 9)],
    [
      "an envelope that says less",
      envelope(binary(GetPaymentRequestSchema, { externalId: "x" }), 0, 1),
    ],
    ["an envelope that says too much", envelope(Buffer.from([1, 2]), 0, 1_000_000)],
    ["an envelope of nothing", envelope(Buffer.alloc(0))],
    ["two envelopes", Buffer.concat([envelope(Buffer.alloc(0)), envelope(Buffer.alloc(0))])],
    ["an envelope said to be compressed", envelope(Buffer.from([1]), 1)],
    ["an envelope of trailers", envelope(Buffer.from("a: b\r\n"), 0x80)],
    ["an envelope with odd flags", envelope(Buffer.alloc(0), 0x42)],
    ["an unknown field", Buffer.concat([known, Buffer.from([0x98, 0x06, 0x01])])],
  ] as const;
  return {
    "a read": ofBody(known),
    "a create": create,
    "a large answer": ofBody(get("large")),
    "a large answer, gzip": withHeaders({ [acceptHeader]: "gzip, br" }, get("large")),
    "a large answer, br": withHeaders({ [acceptHeader]: "deflate,br" }, get("large")),
    "a small answer, gzip": withHeaders({ [acceptHeader]: "gzip" }),
    "an error, gzip": withHeaders({ [acceptHeader]: "gzip" }, get("error:NOT_FOUND")),
    "no compression known": withHeaders({ [acceptHeader]: "zstd" }, get("large")),
    identity: withHeaders({ [encodingHeader]: "identity" }),
    "gzip that is none": withHeaders({ [encodingHeader]: "gzip" }),
    gzip: withHeaders(
      { [encodingHeader]: "gzip" },
      grpc ? envelope(gzipSync(known), 1) : gzipSync(known),
    ),
    "unknown compression": withHeaders({ [encodingHeader]: "zstd" }),
    "an id of its own": withHeaders({ "x-request-id": "trace-1" }),
    "an id that is none": withHeaders({ "x-request-id": "a b" }),
    "an id like a card number": withHeaders({ "x-request-id": "4111111111111111" }),
    "a key": withHeaders({ "idempotency-key": "once" }),
    "a key of nothing": withHeaders({ "idempotency-key": "" }),
    nobody: withHeaders({ authorization: "nobody" }),
    "nobody, and no message": withHeaders({ authorization: "nobody" }, Buffer.from([1])),
    denied: withHeaders({ authorization: "denied" }),
    "a caller of Ukrainian": withHeaders({ "accept-language": "uk" }, get("error:NOT_FOUND")),
    "nobody, in Ukrainian": withHeaders({ authorization: "nobody", "accept-language": "uk-UA" }),
    "a bug in the credentials": withHeaders({ authorization: "bug" }),
    "a bug": ofBody(get("bug:4111111111111111")),
    "an error of Connect": ofBody(get("connect")),
    "a minute's time": withHeaders({ [timeoutHeader]: grpc ? "1M" : "60000" }),
    "more time than there is": withHeaders({ [timeoutHeader]: grpc ? "99999999H" : "9999999999" }),
    "a time-out that is none": withHeaders({ [timeoutHeader]: "soon" }),
    "a negative time-out": withHeaders({ [timeoutHeader]: "-1" }),
    "another method": { method: "PUT", ...ofBody(known) },
    "an unknown path": { path: `${getPayment}s`, ...ofBody(known) },
    "a path with a query": { path: `${getPayment}?a=b`, ...ofBody(known) },
    "another type": { headers: { "content-type": "text/plain" }, body: known },
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
        const sent = { path: getPayment, ...request };
        const [mine, its] = await two.outcomes(version, sent);
        assert.deepEqual(mine, its, name);
        compared += 1;
      }
    });
  }
}

test("at least 300 requests were compared", () => {
  assert.ok(compared >= 300, String(compared));
});

test("the fast path takes ordinary requests and leaves unusual ones to Connect", () => {
  for (const { type, http } of formats) {
    const isPlain = !type.includes(";");
    for (const version of http) {
      const isGrpcOnHttp1 = type === "application/grpc" && version === "1.1";
      const format = protocolOf({ "content-type": type }, version);
      assert.equal(format !== undefined, isPlain && !isGrpcOnHttp1, `${type} ${version}`);
    }
  }
  const compressed = { "content-type": "application/grpc", "grpc-encoding": "gzip" };
  assert.equal(protocolOf(compressed, "2"), undefined);
});

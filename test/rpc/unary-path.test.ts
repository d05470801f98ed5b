import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import type { ErrorCode } from "../../src/errors.ts";
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
  type GetPaymentRequest,
  GetPaymentRequestSchema,
  GetPaymentResponseSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { answeredPayment, errorOf } from "../core/answers.ts";
import {
  binary,
  bothVersions,
  type Formats,
  json,
  type Requests,
  recordedAnswers,
  requestsOf,
} from "./recorded-answers.ts";
import { envelope, getPaymentPath } from "./start.ts";

/* `recorded-answers.ts` describes what is compared, and what is not. */

const createPayment = "/payments.v1.PaymentService/CreatePayment";

/** Behaves as the external id says, for example `error:<code>` or `large`. */
const answers = {
  getPayment: async ({ externalId }: GetPaymentRequest) => {
    const [what, name = ""] = externalId.split(":");
    if (what === "error") throw errorOf(name as ErrorCode);
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

const recorded = recordedAnswers("unary-calls", answers);
before(recorded.start);
after(recorded.stop);

const formats: Formats = {
  "application/json": bothVersions,
  "application/json; charset=utf-8": ["2"],
  "application/proto": bothVersions,
  "application/grpc": bothVersions,
  "application/grpc+proto": ["2"],
  "application/grpc+json": ["2"],
  "application/grpc-web": ["1.1"],
  "application/grpc-web+proto": bothVersions,
  "application/grpc-web+json": bothVersions,
};

function allRequestsOf(type: string): Requests {
  const isGrpc = type.includes("grpc");
  const encoded = <D extends DescMessage>(schema: D, init: MessageInitShape<D>) =>
    type.includes("json") ? json(init) : binary(schema, init);
  const messageOf = (externalId: string) => encoded(GetPaymentRequestSchema, { externalId });
  const create = encoded(CreatePaymentRequestSchema, { externalId: "новый", amount: "10.10" });
  return {
    ...readsByGet(type, messageOf),
    ...requestsOf({ path: getPaymentPath, type, isGrpc, isStream: false, messageOf }),
    "a create": {
      path: createPayment,
      headers: { "content-type": type },
      body: isGrpc ? envelope(create) : create,
    },
  };
}

/** Reads by GET, whose message is in the URL. Only Connect's own protocol has them. */
function readsByGet(type: string, messageOf: (externalId: string) => Buffer): Requests {
  const encoding = type.includes("json") ? "json" : "proto";
  const read = (
    query: Record<string, string | Buffer>,
    headers: Record<string, string> = {},
    path = getPaymentPath,
  ) => {
    const texts = Object.entries(query).map(([name, value]) => [name, value.toString()]);
    const search = new URLSearchParams({ connect: "v1", encoding, ...Object.fromEntries(texts) });
    return { method: "GET", path: `${path}?${search}`, headers, body: Buffer.alloc(0) };
  };
  const base64 = (data: Buffer) => ({ base64: "1", message: data.toString("base64url") });
  const order = messageOf("order-1");
  return {
    "a read": read({ message: order }),
    "a read of nothing": read({}),
    "a read in base64": read(base64(order)),
    "a read of a large answer, gzip": read(base64(messageOf("large")), {
      "accept-encoding": "gzip",
    }),
    "a read, gzip": read({ ...base64(gzipSync(order)), compression: "gzip" }),
    "a read that grows, gzip": read({
      ...base64(gzipSync(messageOf("x".repeat(9_000)))),
      compression: "gzip",
    }),
    "a read that grows too much, gzip": read({
      ...base64(gzipSync(messageOf("x".repeat(20_000)))),
      compression: "gzip",
    }),
    "a read, unknown compression": read({ message: order, compression: "zstd" }),
    "a read, gzip that is none": read({ ...base64(order), compression: "gzip" }),
    "a read with a time-out": read(base64(order), { "connect-timeout-ms": "60000" }),
    "a read with a time-out that is none": read(base64(order), { "connect-timeout-ms": "soon" }),
    "a read with a type": read(base64(order), { "content-type": type }),
    "a read with another type": read(base64(order), { "content-type": "text/plain" }),
    "a read with a type of streams": read(base64(order), {
      "content-type": "application/connect+json",
    }),
    "a read in another encoding": read({ ...base64(order), encoding: "xml" }),
    "a read in gRPC": read({ ...base64(order), encoding: "grpc" }),
    "a read by nobody": read(base64(order), { authorization: "nobody" }),
    "a read that is an error": read(base64(messageOf("error:NOT_FOUND"))),
    "a read whose address is not UTF-8": {
      ...read(base64(order)),
      path: `${getPaymentPath}?connect=v1&encoding=${encoding}&message=%ff`,
    },
    "a create by GET": read(base64(order), {}, createPayment),
  };
}

for (const [type, versions] of Object.entries(formats)) {
  for (const version of versions) {
    test(`calls by ${type} over HTTP/${version} are answered as by Connect's handlers`, async () => {
      await recorded.compare(version, type, getPaymentPath, allRequestsOf(type));
    });
  }
}

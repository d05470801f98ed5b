import assert from "node:assert/strict";
import { after, before, test } from "node:test";
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
import { unaryRequestOf } from "../../src/rpc/protocols.ts";
import { answeredPayment } from "../core/answers.ts";
import {
  binary,
  envelope,
  errorOf,
  json,
  type Requests,
  requestsOf,
  twoWays,
  type Version,
} from "./two-ways.ts";

/* `two-ways.ts` describes what is compared, and what is not. */

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
}

const two = twoWays(answers);
before(two.start);
after(two.stop);

const both = ["1.1", "2"] as const;
const formats: Format[] = [
  { type: "application/json", http: both },
  { type: "application/json; charset=utf-8", http: ["2"] },
  { type: "application/proto", http: both },
  { type: "application/grpc", http: both },
  { type: "application/grpc+proto", http: ["2"] },
  { type: "application/grpc+json", http: ["2"] },
  { type: "application/grpc-web", http: ["1.1"] },
  { type: "application/grpc-web+proto", http: both },
  { type: "application/grpc-web+json", http: both },
];

function allRequestsOf(type: string): Requests {
  const isGrpc = type.includes("grpc");
  const encoded = <D extends DescMessage>(schema: D, init: MessageInitShape<D>) =>
    type.includes("json") ? json(init) : binary(schema, init);
  const messageOf = (externalId: string) => encoded(GetPaymentRequestSchema, { externalId });
  const create = encoded(CreatePaymentRequestSchema, { externalId: "новый", amount: "10.10" });
  return {
    ...requestsOf({ path: getPayment, type, isGrpc, isStream: false, messageOf }),
    "a create": {
      path: createPayment,
      headers: { "content-type": type },
      body: isGrpc ? envelope(create) : create,
    },
  };
}

let compared = 0;
for (const format of formats) {
  for (const version of format.http) {
    test(`the fast path and Connect answer ${format.type} over HTTP/${version} alike`, async () => {
      for (const [name, request] of Object.entries(allRequestsOf(format.type))) {
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
      const format = unaryRequestOf({ "content-type": type }, version);
      assert.equal(format !== undefined, isPlain && !isGrpcOnHttp1, `${type} ${version}`);
    }
  }
  const compressed = { "content-type": "application/grpc", "grpc-encoding": "gzip" };
  assert.equal(unaryRequestOf(compressed, "2"), undefined);
});

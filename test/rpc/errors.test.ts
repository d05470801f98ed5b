import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import type grpc from "@grpc/grpc-js";
import type { Core } from "../../src/core/core.ts";
import { type ErrorCode, GatewayError, type GatewayErrorDetails } from "../../src/errors.ts";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { ErrorType, UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { listedCodes } from "../../src/upstream/error-codes.ts";
import { failure, grpcJsClient, start, wires } from "./start.ts";

const upstream = create(UpstreamErrorSchema, {
  code: "insufficient_funds",
  message: "Недостатньо коштів",
  param: "amount",
  paymentId: "p-1",
  type: ErrorType.PAYMENT_ERROR,
  errorId: "e-1",
  httpStatus: 402,
});

function failing(code: ErrorCode, details: GatewayErrorDetails = {}): Partial<Core> {
  return {
    getPayment: async () => {
      throw new GatewayError(code, `it is ${code}`, details);
    },
  };
}

/** The trailers of a failed GetPayment by grpc-js. */
async function grpcFailure(port: number): Promise<grpc.ServiceError> {
  const client = grpcJsClient(PaymentService, port);
  const error = await new Promise<grpc.ServiceError | null>((resolve) =>
    client.getPayment({}, resolve),
  );
  client.close();
  assert.ok(error);
  return error;
}

for (const { protocol, httpVersion, name } of wires) {
  test(`a refusal says when to retry in Retry-After, and how much is left for this kind of call, by ${name}`, async () => {
    let remaining = 4;
    const refuses = async () => {
      remaining = 3;
      throw new GatewayError("RESOURCE_EXHAUSTED", "not now", { retryAfterMs: 1_250 });
    };
    await using started = await start({
      getPayment: refuses,
      createPayment: refuses,
      rateLimit: () => ({
        limit: 10,
        remaining,
        remainingForReads: remaining - 3,
        resetSeconds: 1,
      }),
    });
    const client = createClient(PaymentService, started.transport(protocol, httpVersion));
    for (const [call, left] of [
      [client.getPayment, 0],
      [client.createPayment, 3],
    ] as const) {
      let header: Headers | undefined;
      const { metadata } = await failure(call({}, { onHeader: (headers) => (header = headers) }));
      assert.equal(metadata.get("retry-after"), "2");
      assert.equal((header ?? metadata).get("ratelimit"), `"account";r=${left};t=1`);
    }
  });
}

/* `unary-path.test.ts` has each code, with its status and all else that is sent with it, in every protocol. */
test("an error carries the whole Error object of the service", async () => {
  await using started = await start(failing("FAILED_PRECONDITION", { upstream }));
  const client = createClient(PaymentService, started.transport("grpc", "2"));
  const [told] = (await failure(client.getPayment({}))).findDetails(UpstreamErrorSchema);
  assert.deepEqual({ ...told }, { ...upstream });
});

test("a code of the service is a reason in a domain of its own, in the form of one", async () => {
  let code = "";
  await using started = await start({
    async getPayment() {
      const upstream = create(UpstreamErrorSchema, { code });
      throw new GatewayError("FAILED_PRECONDITION", "refused", { upstream });
    },
  });
  const client = createClient(PaymentService, started.transport("grpc", "2"));
  const told = async (sent: string) => {
    code = sent;
    const [info] = (await failure(client.getPayment({}))).findDetails(ErrorInfoSchema);
    assert.equal(info?.domain, "payments-service");
    return info.reason;
  };
  assert.equal(await told("insufficient_funds"), "INSUFFICIENT_FUNDS");
  assert.equal(await told("3ds_required"), "CODE_3DS_REQUIRED");
  // The form that google/rpc/error_details.proto names, with at most 63 characters.
  const form = /^[A-Z][A-Z0-9_]{1,61}[A-Z0-9]$/;
  const odd = ["-a-", "x", "9", "§", "наш код", `${"a_".repeat(31)}_b`];
  for (const sent of [...listedCodes, ...odd]) assert.match(await told(sent), form, sent);
});

/* Refusals before the handler are in `unary-path.test.ts`, in every protocol. */
for (const { protocol, httpVersion, name } of wires) {
  test(`a deadline that passes is the gateway's DEADLINE_EXCEEDED, by ${name}`, async () => {
    await using started = await start({
      getPayment: (_, { signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    const payments = createClient(PaymentService, started.transport(protocol, httpVersion));
    // As headers alone, so that the client has no timer of its own, which could fire first.
    const headers = { "grpc-timeout": "50m", "connect-timeout-ms": "50" };
    const error = await failure(payments.getPayment({}, { headers }));
    const told = error.findDetails(ErrorInfoSchema).map(({ reason, domain }) => [domain, reason]);
    assert.deepEqual(told, [["payments-gateway", "DEADLINE_EXCEEDED"]]);
  });
}

test("an error with long texts of the upstream stays small enough for every client", async () => {
  const long = "дуже довго ".repeat(10_000);
  const texts = { code: long, message: long, param: long, paymentId: long, errorId: long };
  await using started = await start({
    getPayment: async () => {
      throw new GatewayError("UNKNOWN", long, {
        reason: "OUTCOME_UNKNOWN",
        upstream: create(UpstreamErrorSchema, texts),
        outcomeUnknown: { externalId: "order-1" },
      });
    },
  });
  const { code, metadata } = await grpcFailure(started.port);
  assert.equal(code, 2);
  const trailers = Object.entries(metadata.toHttp2Headers());
  const size = trailers.reduce(
    (sum, [name, values]) => sum + name.length + String(values).length,
    0,
  );
  assert.ok(size < 8192, `${size} bytes of trailers`);
  assert.ok(metadata.get("grpc-status-details-bin").length === 1);
});

test("an error with half a surrogate pair in its text is still sent", async () => {
  await using started = await start({
    getPayment: async () => {
      throw new GatewayError("NOT_FOUND", "half \ud83d", {
        upstream: create(UpstreamErrorSchema, { message: "\udc00 half" }),
      });
    },
  });
  const { code, details } = await grpcFailure(started.port);
  assert.equal(code, 5);
  assert.equal(details, "half \ufffd");
});

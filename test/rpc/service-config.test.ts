import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { create, getOption } from "@bufbuild/protobuf";
import type grpc from "@grpc/grpc-js";
import type { Core } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import { moves_money } from "../../src/gen/payments/v1/options_pb.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import {
  type GetPaymentResponse,
  GetPaymentResponseSchema,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { answeredPayment } from "../core/answers.ts";
import { grpcJsClient, start } from "./start.ts";

const text = await readFile(new URL("../../clients/grpc-service-config.json", import.meta.url));
const config: {
  methodConfig: { name: { service: string; method: string }[]; retryPolicy?: unknown }[];
} = JSON.parse(text.toString());

/** A core that fails twice before it answers, and a client with the service config. */
async function rig(t: TestContext) {
  const calls = { getPayment: 0, createPayment: 0 };
  const fails = (method: keyof typeof calls) => {
    calls[method] += 1;
    if (calls[method] > 2) return;
    throw new GatewayError("UNAVAILABLE", "not now", { retryAfterMs: 20 });
  };
  const core: Partial<Core> = {
    async getPayment() {
      fails("getPayment");
      return create(GetPaymentResponseSchema, { state: PaymentState.PAID });
    },
    async createPayment() {
      fails("createPayment");
      return answeredPayment();
    },
  };
  const server = await start(core);
  t.after(() => server[Symbol.asyncDispose]());
  const client = grpcJsClient(PaymentService, server.port, {
    "grpc.service_config": text.toString(),
  });
  t.after(() => client.close());
  const call = (method: keyof typeof calls) =>
    new Promise<unknown>((resolve, reject) => {
      const deadline = Date.now() + 20_000;
      client[method]({}, { deadline }, (error, answer) =>
        error ? reject(error) : resolve(answer),
      );
    });
  return { calls, call };
}

test("a gRPC client with the service config retries a read after the time that the gateway sends", async (t) => {
  const { calls, call } = await rig(t);
  const answer = await call("getPayment");
  assert.equal((answer as GetPaymentResponse).state, PaymentState.PAID);
  assert.equal(calls.getPayment, 3);
});

test("a gRPC client with the service config never retries a call that moves money", async (t) => {
  const { calls, call } = await rig(t);
  await assert.rejects(call("createPayment"), (error: grpc.ServiceError) => {
    assert.equal(error.code, 14);
    assert.deepEqual(error.metadata.get("grpc-retry-pushback-ms"), ["20"]);
    return true;
  });
  assert.equal(calls.createPayment, 1);
});

test("the service config names every unary method, and retries only reads", () => {
  const retried = new Map(
    config.methodConfig.flatMap(({ name, retryPolicy }) =>
      name.map(({ service, method }) => [`${service}.${method}`, retryPolicy !== undefined]),
    ),
  );
  const reads = services.flatMap(({ typeName, methods }) =>
    methods
      .filter(({ methodKind }) => methodKind === "unary")
      .flatMap((method) => {
        const isRetried = retried.get(`${typeName}.${method.name}`);
        assert.notEqual(isRetried, undefined, method.name);
        if (getOption(method, moves_money)) assert.equal(isRetried, false, method.name);
        return isRetried ? [method.name] : [];
      }),
  );
  assert.deepEqual(reads, [
    "GetPayment",
    "ListPayments",
    "GetPayout",
    "ListPayouts",
    "FindWalletItems",
    "GetConfirmationStatus",
    "GetOperation",
    "ListEvents",
  ]);
});

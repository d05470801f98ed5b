import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import grpc from "@grpc/grpc-js";
import {
  GetOperationRequestSchema,
  OperationService,
} from "../../src/gen/payments/v1/operation_service_pb.ts";
import { grpcJsClient } from "../rpc/start.ts";
import { startBefore } from "../start.ts";
import { timeoutMs } from "../until.ts";

const request = { externalId: "order", operationId: "6f0e7a52-6a0f-4b8f-9a59-0a1f0f5b2c11" };

/** A gateway whose upstream reads requests and never answers. */
async function start(t: TestContext) {
  const upstream = createServer();
  const gateway = await startBefore(upstream, {
    UPSTREAM_TIMEOUT: "10m",
    AUTH_MODE: "none",
  });
  t.after(() => gateway.stop());
  /** Resolves when the gateway has sent a request and then closed its connection. */
  const givenUp = async () => {
    const signal = AbortSignal.timeout(timeoutMs);
    const [{ socket }] = (await once(upstream, "request", { signal })) as [IncomingMessage];
    await once(socket, "close", { signal });
  };
  return { rpcUrl: gateway.rpcUrl, givenUp };
}

/** Long enough for the call to reach the upstream, on a busy machine too. */
const deadlineMs = 2_000;

test("a deadline of a grpc-js client ends the call and the request to the upstream", async (t) => {
  const { rpcUrl, givenUp } = await start(t);
  const client = grpcJsClient(OperationService, Number(new URL(rpcUrl).port)) as never as {
    getOperation(
      request: unknown,
      options: grpc.CallOptions,
      done: (error: grpc.ServiceError) => void,
    ): void;
  } & grpc.Client;
  const gone = givenUp();
  const error = await new Promise<grpc.ServiceError>((resolve) => {
    const deadline = Date.now() + deadlineMs;
    client.getOperation(create(GetOperationRequestSchema, request), { deadline }, resolve);
  });
  assert.equal(error.code, grpc.status.DEADLINE_EXCEEDED);
  await gone;
  client.close();
});

for (const [name, createTransport] of Object.entries({
  Connect: createConnectTransport,
  gRPC: createGrpcTransport,
  "gRPC-Web": createGrpcWebTransport,
})) {
  test(`a deadline of a ${name} client ends the call and the request to the upstream`, async (t) => {
    const { rpcUrl, givenUp } = await start(t);
    const gone = givenUp();
    const transport = createTransport({ baseUrl: rpcUrl, httpVersion: "1.1" });
    const call = createClient(OperationService, transport).getOperation(request, {
      timeoutMs: deadlineMs,
    });
    await assert.rejects(call, { code: Code.DeadlineExceeded });
    await gone;
  });
}

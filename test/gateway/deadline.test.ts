import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import {
  GetOperationRequestSchema,
  OperationService,
} from "../../src/gen/payments/v1/operation_service_pb.ts";
import { grpcJsClient } from "../rpc/start.ts";
import { startBefore } from "../start.ts";
import { timeoutMs } from "../until.ts";

const request = { externalId: "order", operationId: "6f0e7a52-6a0f-4b8f-9a59-0a1f0f5b2c11" };

/** Long enough for the call to reach the upstream, on a busy machine too. */
const deadlineMs = 2_000;

test("a deadline of a grpc-js client ends the call and the request to the upstream", async (t) => {
  // It reads requests and never answers.
  const upstream = createServer();
  const { rpcUrl, stop } = await startBefore(upstream, {
    UPSTREAM_TIMEOUT: "10m",
    AUTH_MODE: "none",
  });
  t.after(stop);
  /** Resolves when the gateway has sent a request and then closed its connection. */
  const givenUp = async () => {
    const signal = AbortSignal.timeout(timeoutMs);
    const [{ socket }] = (await once(upstream, "request", { signal })) as [IncomingMessage];
    await once(socket, "close", { signal });
  };
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

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { after, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type grpc from "@grpc/grpc-js";
import WebSocket from "ws";
import {
  Health,
  HealthCheckRequestSchema,
  type HealthCheckResponse,
} from "../../src/gen/grpc/health/v1/health_pb.ts";
import { OutcomeUnknownSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { closing } from "../of-suite.ts";
import { grpcJsClient } from "../rpc/start.ts";
import { startBefore, startTestGateway } from "../start.ts";
import { until } from "../until.ts";
import { clientOf, graphql, paymentRequest, socketClient } from "./callers.ts";
import { freePorts, killSpawned, messageOf, spawnCli } from "./spawn.ts";
import { edges, watch } from "./watches.ts";

after(killSpawned);

test("readiness and health report a shutdown first, and calls are served for SHUTDOWN_DELAY", async () => {
  const gateway = spawnCli(["serve"], { ...freePorts, SHUTDOWN_DELAY: "5s" });
  const { admin = "", public: publicUrl = "", rpc = "" } = await gateway.ready;
  const health = grpcJsClient(Health, Number(new URL(rpc).port));
  const { watch } = health as never as {
    watch: (request: unknown) => grpc.ClientReadableStream<HealthCheckResponse>;
  };
  const request = create(HealthCheckRequestSchema, { service: "payments.v1.PaymentService" });
  const stream = watch.call(health, request);
  const statuses: number[] = [];
  stream.on("data", ({ status }) => statuses.push(status));
  const failed = once(stream, "error") as Promise<[grpc.ServiceError]>;
  failed.catch(() => {});
  await once(stream, "data");

  gateway.child.kill("SIGTERM");
  await until(async () => statuses.length === 2);
  assert.deepEqual(statuses, [1, 2]);
  const ready = await fetch(`${admin}/readyz`);
  assert.equal(ready.status, 503);
  assert.deepEqual(await ready.json(), { status: "not ready", reasons: ["shutting down"] });
  // Further signals do not shorten the shutdown.
  for (const signal of ["SIGTERM", "SIGINT"] as const) gateway.child.kill(signal);
  assert.equal((await fetch(`${admin}/healthz`)).status, 200);
  // Each request uses a new connection.
  const { response, data } = await graphql({ publicUrl }, "{ rateLimit { limit } }");
  assert.equal(response.headers.get("connection"), "close");
  assert.ok(data.rateLimit.limit > 0);
  for (const by of ["Connect", "gRPC"] as const) {
    const unknown = clientOf(PaymentService, { rpcUrl: rpc }, by).getPayment({
      externalId: "none",
    });
    await assert.rejects(unknown, { code: Code.NotFound });
  }
  assert.equal((await failed)[0].code, 14);
  assert.deepEqual(await gateway.exit, [0, null]);
  assert.equal(gateway.lines.filter((line) => messageOf(line) === "stopping").length, 1);
  health.close();
});

test("a shutdown ends streams over SHUTDOWN_SPREAD, with a retryable code and a resume cursor", async () => {
  const gateway = await startTestGateway({ SHUTDOWN_SPREAD: "2s" });
  await clientOf(PaymentService, gateway).createPayment(paymentRequest("order"));
  const open = edges.flatMap((edge) =>
    Array.from({ length: 20 }, () => ({ edge, watching: watch(edge, gateway, "order") })),
  );
  const firsts = await Promise.all(open.map(({ watching }) => watching.next()));
  const ends = open.map(async ({ edge, watching }, at) => {
    const { code, resumeCursor } = await watching.ended();
    assert.equal(code, "UNAVAILABLE", edge);
    // The event of the sandbox's callback may have arrived since.
    assert.ok(resumeCursor !== undefined && resumeCursor >= (firsts[at] ?? "none"), edge);
    return { edge, atMs: performance.now() };
  });
  await gateway.stop();
  // Each ends at a random time within two seconds, so the 20 are spread over more than 300 ms.
  for (const [edge, all] of Object.entries(
    Object.groupBy(await Promise.all(ends), (e) => e.edge),
  )) {
    const atMs = all.map((end) => end.atMs);
    assert.ok(Math.max(...atMs) - Math.min(...atMs) > 300, edge);
  }
});

test("a shutdown answers calls that wait for the service, on every kind of connection", async (t) => {
  const upstream = createServer();
  // The last fifth of the time-out is for the answers: long enough on a busy machine.
  const env = { AUTH_MODE: "none", SHUTDOWN_TIMEOUT: "6s" };
  const gateway = closing(t, await startBefore(upstream, env));
  const bySocket = async (query: string) => {
    const { value } = await socketClient(gateway).iterate({ query }).next();
    return value;
  };
  const mutation = (externalId: string) => `mutation {
    createPayment(input: {
      amount: "1", currency: "UAH", mode: HOSTED, externalId: "${externalId}", paymentMethod: {type: CARD}
    }) { __typename ... on OutcomeUnknownError { externalId } }
  }`;
  const query = (id: string) =>
    `{ operation(externalId: "${id}", operationId: "o") { externalId } }`;
  // Compressed requests are served by Connect's own handler.
  const ways = ["gRPC", "gRPC by Connect's own path"] as const;
  let sent = 0;
  upstream.on("request", () => {
    sent += 1;
  });
  const answers = Promise.all([
    graphql(gateway, mutation("post")),
    bySocket(mutation("socket")),
    graphql(gateway, query("post")),
    bySocket(query("socket")),
    ...ways.map((by) =>
      clientOf(PaymentService, gateway, by)
        .createPayment(paymentRequest(by))
        .catch(ConnectError.from),
    ),
  ]);
  await until(async () => sent === 6);
  await gateway.stop();

  const [posted, socketed, readByPost, readBySocket, ...called] = await answers;
  for (const [answer, externalId] of [
    [posted, "post"],
    [socketed, "socket"],
  ]) {
    const unknown = { __typename: "OutcomeUnknownError", externalId };
    assert.deepEqual(answer.data, { createPayment: unknown });
  }
  for (const { errors } of [readByPost, readBySocket]) {
    const { code, reason } = errors[0].extensions;
    assert.deepEqual([code, reason], ["UPSTREAM_UNAVAILABLE", "SHUTTING_DOWN"]);
  }
  for (const [index, error] of (called as ConnectError[]).entries()) {
    // Not DEADLINE_EXCEEDED or CANCELED: no deadline passed, and the caller did not disconnect.
    assert.equal(error.code, Code.Unknown);
    assert.equal(error.findDetails(OutcomeUnknownSchema)[0]?.externalId, ways[index]);
  }
});

test("a shutdown does not wait for connections that have sent nothing, or half of a first request", async (t) => {
  const gateway = closing(t, await startTestGateway({ SHUTDOWN_TIMEOUT: "1h" }));
  const connected = () => net.connect(Number(new URL(gateway.publicUrl).port), "127.0.0.1");
  const silent = connected();
  const stalled = connected();
  await new Promise<void>((resolve) => {
    stalled.write("POST /graphql HTTP/1.1\r\nhost: x\r\n", () => resolve());
  });
  const closed = Promise.all([silent, stalled].map((socket) => once(socket.resume(), "close")));
  // Connections are accepted in their order.
  await fetch(gateway.publicUrl).then((answer) => answer.arrayBuffer());
  await Promise.all([gateway.stop(), closed]);
});

test("clients that hang do not keep the process beyond SHUTDOWN_TIMEOUT", async () => {
  const gateway = spawnCli(["serve"], { ...freePorts, SHUTDOWN_TIMEOUT: "3s" });
  const { public: publicUrl = "", rpc = "" } = await gateway.ready;
  const sockets: { destroy(): void }[] = [];

  // Half a request, on each listener.
  for (const url of [publicUrl, rpc]) {
    const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
    socket.on("error", () => {});
    socket.write("POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{");
    sockets.push(socket);
  }
  // A call whose body never ends, and one whose answer has no flow-control window.
  const session = http2.connect(rpc, { settings: { initialWindowSize: 0 } });
  session.on("error", () => {});
  for (const end of [false, true]) {
    const stream = session.request({
      ":method": "POST",
      ":path": "/payments.v1.PaymentService/GetPayment",
      "content-type": "application/json",
    });
    stream.on("error", () => {});
    stream.write("{}");
    if (end) stream.end();
  }
  sockets.push(session);
  // A WebSocket that answers nothing, not even a close frame.
  const deaf = new WebSocket(`${publicUrl.replace("http", "ws")}/graphql`, "graphql-transport-ws");
  deaf.on("error", () => {});
  await once(deaf, "open");
  (deaf as unknown as { _socket: net.Socket })._socket.pause();
  await fetch(publicUrl).then((answer) => answer.arrayBuffer());

  gateway.child.kill("SIGTERM");
  // Without the limit, the clients would hang for ever.
  assert.deepEqual(await gateway.exit, [0, null]);
  for (const socket of sockets) socket.destroy();
  deaf.terminate();
});

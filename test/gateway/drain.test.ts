import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { after, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
} from "@connectrpc/connect-node";
import type grpc from "@grpc/grpc-js";
import { createClient as createSseClient } from "graphql-sse";
import { createClient as createWsClient } from "graphql-ws";
import WebSocket from "ws";
import {
  Health,
  HealthCheckRequestSchema,
  type HealthCheckResponse,
} from "../../src/gen/grpc/health/v1/health_pb.ts";
import { OutcomeUnknownSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { grpcJsClient } from "../rpc/start.ts";
import { startTestGateway } from "../start.ts";
import { until } from "../until.ts";
import { paymentRequest } from "./operations.ts";
import { freePorts, killSpawned, messageOf, spawnCli } from "./spawn.ts";

after(killSpawned);

const budget = "{ rateLimit { limit } }";
const watchQuery = 'subscription { paymentUpdated(externalId: "order") { cursor } }';

test("readiness and health report a shutdown first, and calls are served for SHUTDOWN_DELAY", async () => {
  const gateway = spawnCli(["serve"], { ...freePorts, SHUTDOWN_DELAY: "2s" });
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
  const graphql = await fetch(`${publicUrl}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query: budget }),
  });
  assert.equal(graphql.headers.get("connection"), "close");
  assert.match(await graphql.text(), /"limit":/);
  for (const transport of [
    createConnectTransport({ baseUrl: rpc, httpVersion: "1.1" }),
    createGrpcTransport({ baseUrl: rpc }),
  ]) {
    const unknown = createClient(PaymentService, transport).getPayment({ externalId: "none" });
    await assert.rejects(unknown, { code: Code.NotFound });
  }
  assert.equal((await failed)[0].code, 14);
  assert.deepEqual(await gateway.exit, [0, null]);
  assert.equal(gateway.lines.filter((line) => messageOf(line) === "stopping").length, 1);
  health.close();
});

/** An open stream: the cursor of its first event, and how it ends. */
interface Watch {
  readonly cursor: string;
  readonly ended: Promise<{ code: string; resumeCursor: string | undefined }>;
}

const watches: Record<string, (rpc: string, publicUrl: string) => Promise<Watch>> = {
  async gRPC(rpc) {
    const client = createClient(PaymentService, createGrpcTransport({ baseUrl: rpc }));
    const events = client.watchPayment({ externalId: "order" })[Symbol.asyncIterator]();
    const cursor = (await events.next()).value?.event?.cursor ?? "";
    const ending = async () => {
      try {
        while (!(await events.next()).done);
      } catch (error) {
        const { code, metadata } = ConnectError.from(error);
        const resumeCursor = metadata.get("x-resume-cursor") ?? undefined;
        return { code: Code[code].toUpperCase(), resumeCursor };
      }
      return assert.fail("the stream ended well");
    };
    return { cursor, ended: ending() };
  },
  async SSE(_, publicUrl) {
    const client = createSseClient({ url: `${publicUrl}/graphql`, retryAttempts: 0 });
    return watched(client.iterate<never>({ query: watchQuery }));
  },
  async WebSocket(_, publicUrl) {
    const client = createWsClient({
      url: `${publicUrl.replace("http", "ws")}/graphql`,
      webSocketImpl: WebSocket,
      retryAttempts: 0,
    });
    return watched(client.iterate<never>({ query: watchQuery }));
  },
};

async function watched(results: AsyncIterableIterator<unknown>): Promise<Watch> {
  const next = async () =>
    (await results.next()).value as {
      data?: { paymentUpdated: { cursor: string } };
      errors?: { extensions: { code: string; resumeCursor: string } }[];
    };
  const cursor = (await next()).data?.paymentUpdated.cursor ?? "";
  const ending = async () => {
    // The event of the sandbox's callback may arrive before the end.
    for (;;) {
      const { errors } = await next();
      if (!errors) continue;
      assert.equal((await results.next()).done, true);
      return errors[0]?.extensions ?? { code: "none", resumeCursor: undefined };
    }
  };
  return { cursor, ended: ending() };
}

test("a shutdown ends streams over SHUTDOWN_SPREAD, with a retryable code and a resume cursor", async () => {
  const gateway = await startTestGateway({ SHUTDOWN_SPREAD: "2s" });
  const { rpcUrl, publicUrl } = gateway;
  const transport = createConnectTransport({ baseUrl: rpcUrl, httpVersion: "2" });
  const payments = createClient(PaymentService, transport);
  await payments.createPayment(paymentRequest("order") as never);
  const outcomes: Promise<void>[] = [];
  const endedAtMs = new Map<string, number[]>();
  for (const [edge, open] of Object.entries(watches)) {
    const all = await Promise.all(Array.from({ length: 100 }, () => open(rpcUrl, publicUrl)));
    const atMs: number[] = [];
    endedAtMs.set(edge, atMs);
    outcomes.push(
      ...all.map(async ({ cursor, ended }) => {
        const { code, resumeCursor } = await ended;
        atMs.push(performance.now());
        assert.match(code, /UNAVAILABLE$/, edge);
        // The event of the sandbox's callback may have arrived since.
        assert.ok(resumeCursor !== undefined && resumeCursor >= cursor, edge);
      }),
    );
  }
  await Promise.all([gateway.stop(), ...outcomes]);
  // Each ends at a random time within two seconds, so the 100 are spread over more than 300 ms.
  for (const [edge, atMs] of endedAtMs) {
    assert.ok(Math.max(...atMs) - Math.min(...atMs) > 300, edge);
  }
});

test("a stream delivers every event that is stored after its headers arrived", async (t) => {
  const gateway = await startTestGateway();
  t.after(() => gateway.stop());
  const transport = createConnectTransport({ baseUrl: gateway.rpcUrl, httpVersion: "2" });
  const header = Promise.withResolvers<Headers>();
  const leave = new AbortController();
  const events = createClient(EventService, transport)
    .streamEvents({}, { onHeader: header.resolve, signal: leave.signal })
    [Symbol.asyncIterator]();
  const first = events.next();
  await header.promise;
  await createClient(PaymentService, transport).createPayment(paymentRequest("order") as never);
  assert.equal((await first).value?.event?.externalId, "order");
  leave.abort();
});

test("a shutdown answers calls that wait for the service, on every kind of connection", async (t) => {
  const upstream = createServer();
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  t.after(() => {
    upstream.close();
    upstream.closeAllConnections();
  });
  const gateway = await startTestGateway({
    UPSTREAM_URL: `http://127.0.0.1:${(upstream.address() as net.AddressInfo).port}`,
    UPSTREAM_LOGIN: "shop",
    UPSTREAM_PASSWORD: "password",
    AUTH_MODE: "none",
    // Its last fifth is for the answers: long enough on a busy machine.
    SHUTDOWN_TIMEOUT: "6s",
  });
  t.after(() => gateway.stop());
  const { publicUrl, rpcUrl } = gateway;
  const byPost = async (query: string) => {
    const answer = await fetch(`${publicUrl}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query }),
    });
    return answer.json();
  };
  const bySocket = async (query: string) => {
    const client = createWsClient({
      url: `${publicUrl.replace("http", "ws")}/graphql`,
      webSocketImpl: WebSocket,
      retryAttempts: 0,
    });
    const { value } = await client.iterate({ query }).next();
    return value;
  };
  const mutation = (externalId: string) => `mutation {
    createPayment(input: {
      amount: "1", currency: "UAH", mode: HOSTED, externalId: "${externalId}", paymentMethod: {type: CARD}
    }) { __typename ... on OutcomeUnknownError { externalId } }
  }`;
  const query = (id: string) =>
    `{ operation(externalId: "${id}", operationId: "o") { externalId } }`;
  const rpc = createClient(PaymentService, createGrpcTransport({ baseUrl: rpcUrl }));
  // Compressed requests are served by Connect's own handler.
  const compressed = { sendCompression: compressionGzip, compressMinBytes: 0 };
  const byConnect = createClient(
    PaymentService,
    createGrpcTransport({ baseUrl: rpcUrl, ...compressed }),
  );
  let sent = 0;
  upstream.on("request", () => {
    sent += 1;
  });
  const answers = Promise.all([
    byPost(mutation("post")),
    bySocket(mutation("socket")),
    byPost(query("post")),
    bySocket(query("socket")),
    rpc.createPayment(paymentRequest("rpc") as never).catch(ConnectError.from),
    byConnect.createPayment(paymentRequest("connect") as never).catch(ConnectError.from),
  ]);
  await until(async () => sent === 6);
  await gateway.stop();

  const [posted, socketed, readByPost, readBySocket, ...called] = await answers;
  for (const [answer, externalId] of [
    [posted, "post"],
    [socketed, "socket"],
  ]) {
    const unknown = { __typename: "OutcomeUnknownError", externalId };
    assert.deepEqual(answer, { data: { createPayment: unknown } });
  }
  for (const { errors } of [readByPost, readBySocket]) {
    assert.equal(errors[0].extensions.code, "UPSTREAM_UNAVAILABLE");
    assert.equal(errors[0].extensions.reason, "SHUTTING_DOWN");
  }
  for (const [index, error] of (called as ConnectError[]).entries()) {
    // Not DEADLINE_EXCEEDED or CANCELED: no deadline passed, and the caller did not disconnect.
    assert.equal(error.code, Code.Unknown);
    const [detail] = error.findDetails(OutcomeUnknownSchema);
    assert.equal(detail?.externalId, ["rpc", "connect"][index]);
  }
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

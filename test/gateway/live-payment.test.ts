import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { create, type DescEnum, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import grpc from "@grpc/grpc-js";
import { createClient as createSseClient } from "graphql-sse";
import { createClient as createWsClient } from "graphql-ws";
import WebSocket from "ws";
import type { Gateway } from "../../src/app/gateway.ts";
import { type Event, EventSourceSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentStatus, PaymentStatusSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import {
  PaymentService,
  WatchPaymentRequestSchema,
  WatchPaymentResponseSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";
import { graphql, paymentOf } from "./callers.ts";

let gateway: Gateway;
before(async () => {
  gateway = await startTestGateway();
});
after(() => gateway.stop());

test("watchers of a 3DS payment by gRPC, SSE and WebSocket all get pending, then success", async () => {
  const externalId = "order-3ds";
  const watchers = [watchByGrpc, watchBySse, watchByWebSocket].map((watch) => watch(externalId));

  const payment = await createPayment(externalId, "4000000000003014");
  assert.equal(payment.details?.status, PaymentStatus.PENDING);
  assert.equal(payment.actionRequired, true);
  const page = payment.action?.value ?? "";
  await clickThrough(page, "approve");

  for (const seen of await Promise.all(watchers)) {
    assert.deepEqual(seen, ["PENDING RESPONSE", "SUCCESS CALLBACK"]);
  }
  const query = await graphql(
    gateway,
    `{ payment(externalId: "${externalId}") { isSuccess details { status amount } } }`,
  );
  assert.deepEqual(query.data.payment, {
    isSuccess: true,
    details: { status: "SUCCESS", amount: "10.10" },
  });
});

test("a watch token lets an EventSource watch its own payment and no other", async () => {
  await createPayment("order-watched", "4111111111111111");
  const made = await graphql(
    gateway,
    `mutation { createWatchToken(input: { externalId: "order-watched", kind: PAYMENT, ttlSeconds: 60 }) {
      ... on WatchToken { token } } }`,
  );
  const token = String((made.data.createWatchToken as { token?: string }).token);
  const subscribe = async (externalId: string) => {
    const query = `subscription { paymentUpdated(externalId: "${externalId}", untilFinal: true) { final } }`;
    const url = `${gateway.publicUrl}/graphql?${new URLSearchParams({ query, watch_token: token })}`;
    const response = await fetch(url, {
      headers: { accept: "text/event-stream" },
      signal: AbortSignal.timeout(timeoutMs),
    });
    return response.text();
  };
  assert.match(await subscribe("order-watched"), /"final":true/);
  assert.match(await subscribe("order-other"), /FORBIDDEN/);
});

function rpc() {
  return createClient(PaymentService, createGrpcTransport({ baseUrl: gateway.rpcUrl }));
}

async function createPayment(externalId: string, number: string) {
  const { payment } = await rpc().createPayment(paymentOf(externalId, number));
  assert.ok(payment);
  return payment;
}

/** Opens a sandbox page and presses one of its buttons, as a browser without scripts would. */
async function clickThrough(page: string, button: string): Promise<void> {
  const html = await (await fetch(page)).text();
  const form = /<form[^>]*action="([^"]*)"/.exec(html)?.[1] ?? "";
  const [, name = "", value = ""] =
    new RegExp(`<button[^>]*name="([^"]+)"[^>]*value="(${button})"`, "i").exec(html) ?? [];
  assert.ok(name, `no button ${button} in ${html}`);
  const answer = await fetch(new URL(form, page), {
    method: "POST",
    body: new URLSearchParams({ [name]: value }),
    redirect: "manual",
  });
  assert.ok(answer.status < 400, `${answer.status}`);
  await answer.arrayBuffer();
}

function nameOf(desc: DescEnum, value: number | undefined): string | undefined {
  return desc.value[value ?? 0]?.localName;
}

/** Watches with grpc-js alone, as a Node.js service without Connect would. */
function watchByGrpc(externalId: string): Promise<string[]> {
  const Client = grpc.makeGenericClientConstructor(
    {
      watchPayment: {
        path: "/payments.v1.PaymentService/WatchPayment",
        requestStream: false,
        responseStream: true,
        requestSerialize: (message) => Buffer.from(toBinary(WatchPaymentRequestSchema, message)),
        requestDeserialize: (bytes) => fromBinary(WatchPaymentRequestSchema, bytes),
        responseSerialize: (message) => Buffer.from(toBinary(WatchPaymentResponseSchema, message)),
        responseDeserialize: (bytes) => fromBinary(WatchPaymentResponseSchema, bytes),
      },
    },
    "PaymentService",
  );
  const client = new Client(new URL(gateway.rpcUrl).host, grpc.credentials.createInsecure());
  const stream = client.watchPayment?.(
    create(WatchPaymentRequestSchema, { externalId, untilFinal: true }),
    new grpc.Metadata(),
    { deadline: Date.now() + timeoutMs },
  ) as unknown as grpc.ClientReadableStream<{ event?: Event }>;
  return new Promise((resolve, reject) => {
    const seen: string[] = [];
    stream.on("data", ({ event }) => {
      const status = event?.resource.case === "payment" && event.resource.value.details?.status;
      seen.push(
        `${nameOf(PaymentStatusSchema, status || 0)} ${nameOf(EventSourceSchema, event?.source)}`,
      );
    });
    stream.on("error", reject);
    stream.on("end", () => resolve(seen));
  }).finally(() => client.close()) as Promise<string[]>;
}

const subscription = `subscription ($externalId: ID!) {
  paymentUpdated(externalId: $externalId, untilFinal: true) {
    source
    payment { details { status } }
  }
}`;

interface Updated {
  paymentUpdated: { source: string; payment: { details: { status: string } } };
}

async function watchBySse(externalId: string): Promise<string[]> {
  const client = createSseClient({ url: `${gateway.publicUrl}/graphql`, retryAttempts: 0 });
  try {
    return await collect(
      client.iterate<Updated>({ query: subscription, variables: { externalId } }),
    );
  } finally {
    client.dispose();
  }
}

async function watchByWebSocket(externalId: string): Promise<string[]> {
  const client = createWsClient({
    url: `${gateway.publicUrl.replace("http", "ws")}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  try {
    return await collect(
      client.iterate<Updated>({ query: subscription, variables: { externalId } }),
    );
  } finally {
    await client.dispose();
  }
}

async function collect(
  results: AsyncIterable<{ data?: Updated | null | undefined; errors?: unknown }>,
): Promise<string[]> {
  const seen: string[] = [];
  for await (const { data, errors } of results) {
    assert.equal(errors, undefined);
    const { source, payment } = data?.paymentUpdated ?? {};
    seen.push(`${payment?.details.status} ${source}`);
  }
  return seen;
}

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { describe, it } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createRouterTransport,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { ErrorInfoSchema } from "../../clients/typescript/src/gen/google/rpc/error_details_pb.ts";
import {
  createPaymentsGateway,
  credentials,
  type Event,
  EventKind,
  EventService,
  EventSource,
  failureOf,
  idempotencyKey,
  PaymentMode,
  PaymentService,
  PaymentStatus,
  type PaymentsGateway,
  UpstreamErrorSchema,
  watchEvents,
  watchPayment,
  watchPayout,
} from "../../clients/typescript/src/index.ts";
import { signCallback, verifyCallback } from "../../clients/typescript/src/webhook.ts";
import { startCuttingProxy } from "../cutting-proxy.ts";
import { approve, paymentRequest, payoutRequest } from "../gateway/callers.ts";
import { listen, serve } from "../listen.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { inTime } from "../until.ts";

const gateway = ofSuite(startTestGateway);

const visa3ds = "4000000000003014";
const noFunds = "4000000000000614";
const rateLimited = "4000000000000739";
const lostAnswer = "4000000000000713";

const transports: [string, (baseUrl: string) => Transport][] = [
  ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
  ["Connect", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })],
  ["gRPC-Web", (baseUrl) => createGrpcWebTransport({ baseUrl })],
];
const direct = () => createPaymentsGateway(createGrpcTransport({ baseUrl: gateway.rpcUrl }));

const order = (externalId: string, number?: string) => ({
  ...paymentRequest(externalId, number),
  mode: PaymentMode.DIRECT,
});

describe("a watch", () => {
  const proxy = ofSuite(() => startCuttingProxy(gateway.rpcUrl));

  for (const [name, transport] of transports) {
    it(`resumes behind the last event after the connection was cut (${name})`, async () => {
      const externalId = `cut-${name}`;
      const client = createPaymentsGateway(transport(proxy.url));
      const { payment } = await direct().payments.createPayment(order(externalId, visa3ds));
      const seen: Event[] = [];
      let cuts = 0;
      const onReconnect = () => {
        cuts += 1;
        // The watch must not miss what happens while it is disconnected.
        if (cuts === 2) void approve(payment?.action?.value).then(() => proxy.mend());
      };
      for await (const event of watchPayment(client, externalId, { ...inTime(), onReconnect })) {
        seen.push(event);
        if (seen.length === 1) proxy.cut();
      }
      const statuses = seen.map(({ resource }) =>
        resource.case === "payment" ? resource.value.details?.status : undefined,
      );
      assert.deepEqual(statuses, [PaymentStatus.PENDING, PaymentStatus.SUCCESS]);
      assert.ok(cuts >= 2);
      assert.equal(new Set(seen.map(({ cursor }) => cursor)).size, 2);
    });
  }

  it("of the account misses nothing if it is cut before its first event", async () => {
    const externalId = "cut-first";
    const opened = Promise.withResolvers<void>();
    const onOpened: Interceptor = (next) => async (request) => {
      const response = await next(request);
      opened.resolve();
      return response;
    };
    const client = createPaymentsGateway(
      createGrpcTransport({ baseUrl: proxy.url, interceptors: [onOpened] }),
    );
    const cut = Promise.withResolvers<void>();
    const events = watchEvents(client, {
      ...inTime(),
      kinds: [EventKind.PAYMENT],
      onReconnect: () => cut.resolve(),
    });
    const first = events.next();
    await opened.promise;
    proxy.cut();
    await cut.promise;
    await direct().payments.createPayment(order(externalId));
    proxy.mend();
    assert.equal((await first).value?.externalId, externalId);
    await events.return();
  });

  it("resumes after a proxy ended the stream in a well-formed way", async (t) => {
    const proxy = createHttpServer((request, response) => {
      response.writeHead(200, { "content-type": request.headers["content-type"] }).end();
    });
    const baseUrl = await serve(t, proxy);
    for (const transport of [
      createConnectTransport({ baseUrl, httpVersion: "1.1" }),
      createGrpcWebTransport({ baseUrl }),
    ]) {
      const stop = new AbortController();
      const options = { signal: stop.signal, onReconnect: () => stop.abort() };
      const watch = watchPayment(createPaymentsGateway(transport), "any", options);
      assert.deepEqual(await watch.next(), { done: true, value: undefined });
      assert.ok(stop.signal.aborted);
    }
  });

  it("ends at once when the payment was settled by the event at its cursor", async () => {
    const client = direct();
    const externalId = "settled-before";
    await client.payments.createPayment(order(externalId));
    // The answer, then the callback.
    const all = watchPayment(client, externalId, { ...inTime(), untilFinal: false });
    const last = await firstOf(
      all,
      ({ final, source }) => final && source === EventSource.CALLBACK,
    );
    const onReconnect = () => assert.fail("the gateway has ended the watch");
    const options = { ...inTime(), afterCursor: last.cursor, onReconnect };
    const rest = watchPayment(client, externalId, options);
    assert.deepEqual(await rest.next(), { done: true, value: undefined });
  });

  it("resumes at the cursor of an error that comes before its first event", async () => {
    const asked: (string | undefined)[] = [];
    const end = new AbortController();
    const transport = createRouterTransport(({ service }) => {
      service(EventService, {
        // biome-ignore lint/correctness/useYield: it fails before.
        async *streamEvents({ afterCursor }) {
          asked.push(afterCursor);
          if (asked.length > 1) end.abort();
          throw gatewayError(Code.Unavailable, { resume_cursor: "c7" });
        },
      });
    });
    const events = watchEvents(createPaymentsGateway(transport), { signal: end.signal });
    assert.deepEqual(await events.next(), { done: true, value: undefined });
    assert.deepEqual(asked, [undefined, "c7"]);
  });

  it("ends without an error when its signal aborts", async () => {
    const stop = new AbortController();
    const watch = watchPayment(direct(), "nobody-pays", { signal: stop.signal });
    const next = watch.next();
    stop.abort();
    assert.deepEqual(await next, { done: true, value: undefined });
  });

  it("throws an error that a retry would not mend", async () => {
    const watch = watchPayment(direct(), "any", { afterCursor: "never a cursor" });
    assert.equal((await failureIn(watch.next())).kind, "invalid");
  });

  it("of the whole account begins at the cursor", async () => {
    const client = direct();
    await client.payouts.requestPayout(payoutRequest("payout-1"));
    const kinds = [EventKind.PAYOUT];
    const final = (event: Event) => event.final;
    const all = watchEvents(client, { afterCursor: "earliest", kinds, ...inTime() });
    const first = await firstOf(all, final);
    assert.equal(first.externalId, "payout-1");
    const again = await firstOf(watchPayout(client, "payout-1", inTime()), final);
    assert.equal(again.source, EventSource.CALLBACK);
  });
});

describe("a failure", () => {
  const failed = (call: (client: PaymentsGateway) => Promise<unknown>) => failureIn(call(direct()));

  for (const [what, request, told] of [
    [
      "reports that the outcome is unknown",
      order("lost", lostAnswer),
      { kind: "outcome_unknown", externalId: "lost" },
    ],
    [
      "reports why the payments service declined",
      order("poor", noFunds),
      { kind: "rejected", code: Code.FailedPrecondition, upstream: { code: "insufficient_funds" } },
    ],
    [
      "is the service's refusal of what it takes for invalid",
      order("wrong", "4111111111111112"),
      { kind: "rejected", code: Code.InvalidArgument, upstream: { code: "wrong_card_number" } },
    ],
    [
      "names the invalid fields",
      { ...order("bad"), amount: "1e3" },
      { kind: "invalid", fields: [{ path: "amount" }] },
    ],
  ] as const) {
    it(what, async () => {
      const failure = await failed((client) => client.payments.createPayment(request));
      assert.partialDeepStrictEqual(failure, told);
    });
  }

  it("is the service's refusal if it has its Error object, unless that asks for a later retry", () => {
    for (const [code, kind] of [
      [Code.PermissionDenied, "rejected"],
      [Code.Unauthenticated, "rejected"],
      [Code.NotFound, "rejected"],
      [Code.AlreadyExists, "rejected"],
      [Code.Internal, "rejected"],
      [Code.ResourceExhausted, "not_now"],
      [Code.Unavailable, "not_now"],
    ] as const) {
      const failure = failureOf(gatewayError(code, {}, upstreamError("said")));
      assert.partialDeepStrictEqual(failure, { kind, upstream: { code: "said" } }, Code[code]);
    }
  });

  it("does not claim that nothing was done if the gateway did not answer", async (t) => {
    const held = createServer((socket) => {
      socket.on("error", () => {});
      // Leaves time for a whole call to arrive: its preface, its headers and its message.
      socket.once("data", () => setTimeout(() => socket.destroy(), 50));
    });
    t.after(() => held.close());
    const baseUrl = `http://127.0.0.1:${await listen(held)}`;
    const client = createPaymentsGateway(createConnectTransport({ baseUrl, httpVersion: "1.1" }));
    const failure = await failureIn(client.payments.createPayment(order("cut")));
    assert.equal(failure.kind, "no_answer");
    const { Unavailable, DeadlineExceeded, Internal, Canceled, ResourceExhausted } = Code;
    for (const code of [Unavailable, DeadlineExceeded, Internal, Canceled, ResourceExhausted]) {
      assert.equal(failureOf(new ConnectError("cut", code)).kind, "no_answer", Code[code]);
    }
  });

  it("does not claim that the request is invalid if the answer breaks off", async (t) => {
    const proxy = createHttpServer((_, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end('{"payment":{"id":"');
    });
    const baseUrl = await serve(t, proxy);
    const client = createPaymentsGateway(
      createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
    );
    const failure = await failureIn(client.payments.createPayment(order("broken-off")));
    assert.equal(failure.kind, "no_answer");
  });

  it("reports when to retry", async () => {
    const failure = await failed((c) => c.payments.createPayment(order("busy", rateLimited)));
    assert.ok(failure.kind === "not_now", failure.kind);
    assert.ok((failure.retryAfterMs ?? 0) > 0);
  });

  it("is `not_allowed` with a wrong key, which `credentials` sends", async () => {
    const shown: (string | null)[] = [];
    const interceptors = [credentials({ token: async () => "a wrong key" })];
    const transport = createRouterTransport(
      ({ service }) =>
        service(PaymentService, {
          getPayment(_, { requestHeader }) {
            shown.push(requestHeader.get("authorization"));
            throw gatewayError(Code.Unauthenticated);
          },
        }),
      { transport: { interceptors } },
    );
    const { payments } = createPaymentsGateway(transport);
    const failure = await failureIn(payments.getPayment({ externalId: "order" }));
    assert.equal(failure.kind, "not_allowed");
    assert.deepEqual(shown, ["Bearer a wrong key"]);
  });

  it("is told by the code of any other error; what has the gateway's ErrorInfo is its own", () => {
    for (const [error, kind] of [
      [gatewayError(Code.Unavailable), "not_now"],
      [gatewayError(Code.DeadlineExceeded), "other"],
      [gatewayError(Code.NotFound), "other"],
      [new TypeError("no such thing"), "other"],
      [new ConnectError("gone", Code.OutOfRange), "cursor_lost"],
    ] as const) {
      assert.equal(failureOf(error).kind, kind, error.message);
    }
  });
});

describe("an idempotency key", () => {
  it("makes a repeated call one payment", async () => {
    const { payments } = direct();
    const headers = idempotencyKey("order-77");
    const request = order("order-77");
    const [first, again] = await Promise.all([
      payments.createPayment(request, { headers }),
      payments.createPayment(request, { headers }),
    ]);
    assert.ok(first.payment?.details?.paymentId);
    assert.equal(first.payment.details.paymentId, again.payment?.details?.paymentId);
  });

  it("that a header cannot carry is refused", () => {
    for (const key of ["", "ключ", "a\nb", "order 77", "k".repeat(256)]) {
      assert.throws(() => idempotencyKey(key), RangeError);
    }
  });
});

describe("the webhook verifier", () => {
  it("agrees with the signatures of an independent program", async () => {
    const vectors = JSON.parse(
      await readFile(`${import.meta.dirname}/../fixtures/callback-signatures.json`, "utf8"),
    ) as {
      name: string;
      password: string;
      bodyBase64: string;
      signature: string;
      valid: boolean;
    }[];
    assert.ok(vectors.length > 3);
    for (const { name, password, bodyBase64, signature, valid } of vectors) {
      const body = Buffer.from(bodyBase64, "base64");
      assert.equal(verifyCallback(body, signature, [password]), valid, name);
      assert.equal(signCallback(body, password) === signature, valid, name);
    }
  });

  it("refuses a missing and a doubled header, and an empty password", () => {
    const body = Buffer.from("{}");
    const header = signCallback(body, "");
    assert.equal(verifyCallback(body, header, ""), false);
    assert.equal(verifyCallback(body, undefined, "password"), false);
    const right = signCallback(body, "password");
    assert.equal(verifyCallback(body, [right, right], "password"), false);
    assert.equal(verifyCallback(body, right, ["former", "password"]), true);
  });
});

/** An error as the gateway would send it: with its ErrorInfo. */
function gatewayError(
  code: Code,
  metadata: Record<string, string> = {},
  ...details: ConnectError["details"]
): ConnectError {
  const error = new ConnectError("it failed", code);
  const isOfService = details.some(
    (one) => "type" in one && one.type === UpstreamErrorSchema.typeName,
  );
  const domain = isOfService ? "payments-service" : "payments-gateway";
  const info = create(ErrorInfoSchema, { reason: "REASON", domain, metadata });
  const value = toBinary(ErrorInfoSchema, info);
  error.details.push({ type: ErrorInfoSchema.typeName, value }, ...details);
  return error;
}

function upstreamError(code: string): ConnectError["details"][number] {
  const value = toBinary(UpstreamErrorSchema, create(UpstreamErrorSchema, { code }));
  return { type: UpstreamErrorSchema.typeName, value };
}

async function failureIn(call: Promise<unknown>) {
  const unexpected = () => assert.fail("the call succeeded");
  return failureOf(await call.then(unexpected, (error: unknown) => error));
}

async function firstOf(events: AsyncIterable<Event>, wanted: (event: Event) => boolean) {
  for await (const event of events) if (wanted(event)) return event;
  return assert.fail("the watch ended");
}

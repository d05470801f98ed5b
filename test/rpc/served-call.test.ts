import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import type { Call } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import {
  GetPaymentResponseSchema,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import type { Identify } from "../../src/rpc/served-call.ts";
import { caller, start, wires } from "./start.ts";

const known = create(GetPaymentResponseSchema, { cursor: "c1" });
const getPayment = "/payments.v1.PaymentService/GetPayment";

const nobody: Identify = async () => {
  throw new GatewayError("UNAUTHENTICATED", "an API key or token is needed", {
    reason: "NO_CREDENTIALS",
  });
};

async function code(call: Promise<unknown>): Promise<Code | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    return ConnectError.from(error).code;
  }
}

/** Resolves when the signal aborts. */
function aborted(signal: AbortSignal): Promise<unknown> {
  return signal.aborted ? Promise.resolve() : once(signal, "abort");
}

for (const { protocol, httpVersion, name } of wires) {
  test(`the core receives the caller, key, id and deadline of a call by ${name}`, async () => {
    const seen: Pick<Headers, "get">[] = [];
    const identify: Identify = async (headers) => {
      seen.push(headers);
      return caller;
    };
    await using started = await start({ getPayment: async () => known }, { identify });
    const client = createClient(PaymentService, started.transport(protocol, httpVersion));
    const before = Date.now();
    await client.getPayment(
      { externalId: "order-1" },
      {
        timeoutMs: 60_000,
        headers: {
          authorization: "Bearer k",
          "idempotency-key": "once",
          "x-request-id": "trace-1",
        },
      },
    );
    const call = started.calls[0]?.call;
    assert.equal(seen[0]?.get("authorization"), "Bearer k");
    assert.equal(call?.caller, caller);
    assert.equal(call?.idempotencyKey, "once");
    assert.equal(call?.requestId, "trace-1");
    const deadline = call?.deadlineMs ?? 0;
    assert.ok(deadline > before + 50_000 && deadline <= Date.now() + 60_000);
    assert.equal(call?.signal.aborted, false);
  });

  test(`a caller that cancels its call aborts it in the core by ${name}`, async () => {
    const entered = Promise.withResolvers<Call>();
    await using started = await start({
      getPayment: async (_request, call) => {
        entered.resolve(call);
        await aborted(call.signal);
        // A plain AbortError, as fetch throws it.
        throw new DOMException("aborted", "AbortError");
      },
    });
    const client = createClient(PaymentService, started.transport(protocol, httpVersion));
    const controller = new AbortController();
    const outcome = code(client.getPayment({}, { signal: controller.signal }));
    const { signal } = await entered.promise;
    controller.abort();
    assert.equal(await outcome, Code.Canceled);
    await aborted(signal);
    assert.equal((signal.reason as GatewayError).code, "CANCELLED");
    const record = await started.logged(({ message }) => message === "rpc");
    assert.equal(record.code, "CANCELLED");
    assert.equal(started.records.length, 1);
  });
}

for (const [protocol, header, value] of [
  ["connect", "connect-timeout-ms", "9999999999"],
  ["grpc", "grpc-timeout", "99999999H"],
] as const) {
  test(`a ${header} longer than the server allows is shortened`, async () => {
    async function* none() {}
    await using started = await start({ getPayment: async () => known, watchPayment: none });
    const client = createClient(PaymentService, started.transport(protocol, "2"));
    const before = Date.now();
    const headers = { [header]: value };
    await client.getPayment({}, { headers });
    for await (const _ of client.watchPayment({}, { headers }));
    const [unary, stream] = started.calls.map(({ call }) => (call.deadlineMs ?? 0) - before);
    const slackMs = 30_000;
    assert.ok(unary && unary > 300_000 - slackMs && unary < 300_000 + slackMs);
    // A stream has no such limit, but its timer must not overflow and fire at once.
    assert.ok(stream && stream > 2 ** 31 - slackMs && stream < 2 ** 31 + slackMs);
  });
}

test("a caller is refused before its request is read", async () => {
  await using started = await start({}, { identify: nobody });
  const session = http2.connect(started.url);
  const stream = session.request({
    ":method": "POST",
    ":path": getPayment,
    "content-type": "application/json",
  });
  stream.write('{"externalId":');
  const [headers] = await once(stream, "response");
  assert.equal(headers[":status"], 401);
  const record = await started.logged(({ message }) => message === "rpc");
  const told = [record.method, record.code, record.reason, record.caller];
  assert.deepEqual(told, [getPayment.slice(1), "UNAUTHENTICATED", "NO_CREDENTIALS", undefined]);
  stream.close();
  session.destroy();
});

test("a request id that could forge a log record, or is a card number, is replaced", async () => {
  await using started = await start({ getPayment: async () => known });
  const ids = await Promise.all(
    ["a b", "x".repeat(200), "{}", "card-4111-1111-1111-1111"].map(async (id) => {
      const answer = await started.post("GetPayment", "{}", { "x-request-id": id });
      return answer.headers.get("x-request-id") ?? "";
    }),
  );
  for (const id of ids) assert.match(id, /^[0-9a-f-]{36}$/);
  assert.equal(new Set(ids).size, 4);
});

test("a call writes one log record, which has the external_id and no more of its messages", async () => {
  await using started = await start({
    async getPayment({ externalId }, call) {
      call.onAbout?.(externalId);
      return known;
    },
  });
  const client = createClient(PaymentService, started.transport("grpc", "2"));
  await client.getPayment({ externalId: "order-77" }, { headers: { "x-request-id": "trace-1" } });
  const { durationMs, ...record } = await started.logged(() => true);
  assert.deepEqual(record, {
    level: "info",
    message: "rpc",
    method: "payments.v1.PaymentService/GetPayment",
    code: "OK",
    requestId: "trace-1",
    caller: "shop",
    account: "default",
    externalId: "order-77",
    protocol: "grpc",
  });
  assert.equal(typeof durationMs, "number");
  assert.equal(started.records.length, 1);
});

test("a rate budget that cannot be read does not fail the call", async () => {
  await using started = await start({
    getPayment: async () => known,
    rateLimit: () => {
      throw new Error("no bucket");
    },
  });
  const client = createClient(PaymentService, started.transport("connect", "2"));
  assert.equal((await client.getPayment({})).cursor, "c1");
});

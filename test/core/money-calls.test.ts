import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { Call } from "../../src/core/core.ts";
import { createMemoryIdempotency, keyRetentionMs } from "../../src/core/idempotency.ts";
import { createMoneyCalls } from "../../src/core/money-calls.ts";
import { GatewayError } from "../../src/errors.ts";
import { ConfirmPaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import type { SendOptions } from "../../src/upstream/upstream.ts";

const request = (amount = "1.00") =>
  create(ConfirmPaymentRequestSchema, { externalId: "order", amount });

function callOf(signal = new AbortController().signal, idempotencyKey?: string): Call {
  return {
    caller: { name: "test", account: "default", scopes: new Set() },
    signal,
    requestId: "r",
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
}

/** A call whose answer the test gives. */
function pendingCall() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const started = Promise.withResolvers<SendOptions>();
  let sends = 0;
  return {
    answer: resolve,
    fail: reject,
    started: started.promise,
    sends: () => sends,
    send: (options: SendOptions) => {
      sends++;
      started.resolve(options);
      options.signal.addEventListener("abort", () =>
        reject(new GatewayError("CANCELLED", "gave up waiting")),
      );
      return promise;
    },
  };
}

const learned: string[] = [];
const base = {
  method: "ConfirmPayment",
  externalId: "order",
  schema: ConfirmPaymentRequestSchema,
  learn: async (answer: string) => void learned.push(answer),
};

const isUnknown = (error: unknown) =>
  error instanceof GatewayError &&
  error.code === "DEADLINE_EXCEEDED" &&
  error.details.outcomeUnknown?.externalId === "order";

test("a caller who leaves after the call was sent is told that its outcome is unknown", async () => {
  const calls = createMoneyCalls(createMemoryIdempotency());
  const leave = new AbortController();
  const upstream = pendingCall();
  // Sent, the upstream no longer listens to the caller's signal.
  const send = (options: SendOptions) => {
    options.onSent?.();
    return upstream.send({ ...options, signal: new AbortController().signal });
  };
  const outcome = calls.run({ ...base, call: callOf(leave.signal), request: request(), send });
  const refused = assert.rejects(outcome, isUnknown);
  await upstream.started;
  leave.abort();
  await refused;

  // The answer is learned from all the same, and a shutdown waits for it.
  const idle = calls.idle();
  upstream.answer("late");
  await idle;
  assert.deepEqual(learned.splice(0), ["late"]);
});

test("a caller who leaves before the call was sent has lost nothing", async () => {
  const calls = createMoneyCalls(createMemoryIdempotency());
  const leave = new AbortController();
  const upstream = pendingCall();
  const outcome = calls.run({
    ...base,
    call: callOf(leave.signal),
    request: request(),
    send: upstream.send,
  });
  const refused = assert.rejects(
    outcome,
    (error) => error instanceof GatewayError && !error.details.outcomeUnknown,
  );
  await upstream.started;
  leave.abort();
  await refused;
});

test("a hundred callers with one key share one call and its answer", async () => {
  const calls = createMoneyCalls(createMemoryIdempotency());
  const upstream = pendingCall();
  const outcomes = Array.from({ length: 100 }, () =>
    calls.run({ ...base, call: callOf(undefined, "key"), request: request(), send: upstream.send }),
  );
  const { onSent } = await upstream.started;
  onSent?.();
  upstream.answer("first");
  assert.deepEqual(await Promise.all(outcomes), Array(100).fill("first"));
  assert.equal(upstream.sends(), 1);
  const later = pendingCall();
  const again = { ...base, call: callOf(undefined, "key"), request: request(), send: later.send };
  assert.equal(await calls.run(again), "first");
  assert.equal(later.sends(), 0);
});

test("without a key every call is sent", async () => {
  const calls = createMoneyCalls(createMemoryIdempotency());
  let sends = 0;
  const send = async () => `answer ${++sends}`;
  const run = () => calls.run({ ...base, call: callOf(), request: request(), send });
  assert.deepEqual([await run(), await run()], ["answer 1", "answer 2"]);
});

test("a key used for another request is refused, and nothing is sent", async () => {
  const calls = createMoneyCalls(createMemoryIdempotency());
  let sends = 0;
  const send = async ({ onSent }: SendOptions) => {
    onSent?.();
    return `answer ${++sends}`;
  };
  const run = (amount: string) =>
    calls.run({ ...base, call: callOf(undefined, "key"), request: request(amount), send });
  await run("1.00");
  await assert.rejects(run("2.00"), { code: "ALREADY_EXISTS" });
  assert.equal(sends, 1);
});

test("an unknown outcome is remembered as unknown under its key", async () => {
  const calls = createMoneyCalls(createMemoryIdempotency());
  let sends = 0;
  const send = async ({ onSent }: SendOptions): Promise<string> => {
    sends++;
    onSent?.();
    throw new GatewayError("UNKNOWN", "no answer", { outcomeUnknown: { externalId: "order" } });
  };
  const run = () =>
    calls.run({ ...base, call: callOf(undefined, "key"), request: request(), send });
  await assert.rejects(run(), { code: "UNKNOWN" });
  await assert.rejects(run(), { code: "UNKNOWN" });
  assert.equal(sends, 1);
});

test("a failure before the call was sent leaves its key free", async () => {
  const calls = createMoneyCalls(createMemoryIdempotency());
  let sends = 0;
  const send = async (): Promise<string> => {
    if (++sends === 1) throw new GatewayError("UNAVAILABLE", "refused");
    return "second";
  };
  const run = () =>
    calls.run({ ...base, call: callOf(undefined, "key"), request: request(), send });
  await assert.rejects(run(), { code: "UNAVAILABLE" });
  assert.equal(await run(), "second");
});

test("who waits for a first caller that leaves before anything was sent takes its place", async () => {
  const calls = createMoneyCalls(createMemoryIdempotency());
  const leave = new AbortController();
  const first = pendingCall();
  const second = pendingCall();
  const shared = { ...base, request: request() };
  const left = calls.run({ ...shared, call: callOf(leave.signal, "key"), send: first.send });
  const refused = assert.rejects(left, { code: "CANCELLED" });
  const stays = calls.run({ ...shared, call: callOf(undefined, "key"), send: second.send });
  await first.started;
  leave.abort();
  await refused;
  await second.started;
  second.answer("second");
  assert.equal(await stays, "second");
  assert.deepEqual([first.sends(), second.sends()], [1, 1]);
});

test("a key is forgotten after a day", async () => {
  let nowMs = 0;
  const calls = createMoneyCalls(createMemoryIdempotency(() => nowMs));
  let sends = 0;
  const send = async ({ onSent }: SendOptions) => {
    onSent?.();
    return ++sends;
  };
  const run = () =>
    calls.run({
      ...base,
      learn: async () => {},
      call: callOf(undefined, "key"),
      request: request(),
      send,
    });
  assert.equal(await run(), 1);
  nowMs = keyRetentionMs - 1;
  assert.equal(await run(), 1);
  nowMs = keyRetentionMs + 1;
  assert.equal(await run(), 2);
});

test("a key that is no key is refused", async () => {
  const calls = createMoneyCalls(createMemoryIdempotency());
  for (const key of ["", "a b", "x".repeat(256), "ключ"]) {
    await assert.rejects(
      calls.run({
        ...base,
        call: callOf(undefined, key),
        request: request(),
        send: async () => "",
      }),
      { code: "INVALID_ARGUMENT" },
    );
  }
});

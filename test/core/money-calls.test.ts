import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescMessage } from "@bufbuild/protobuf";
import type { Call } from "../../src/core/core.ts";
import { createMoneyCalls, type MoneyCall } from "../../src/core/money-calls.ts";
import { GatewayError } from "../../src/errors.ts";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import {
  type Payment,
  PaymentSchema,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { ConfirmPaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { paymentEntry } from "../../src/ledger/entry.ts";
import {
  type Ending,
  type IntentStore,
  keyRetentionMs,
  type NewIntent,
} from "../../src/ledger/intents.ts";
import type { Entry } from "../../src/ledger/log.ts";
import { createMemoryLedger } from "../../src/ledger/memory.ts";
import type { MoneyMethod } from "../../src/model/money-methods.ts";
import { deriveKeyring } from "../../src/secrets/keyring.ts";
import { Secret } from "../../src/secrets/secret.ts";
import type { SendOptions } from "../../src/upstream/upstream.ts";
import { openCalls } from "../open-calls.ts";

const request = (amount = "1.00") =>
  create(ConfirmPaymentRequestSchema, { externalId: "order", amount });

/** An answer with this id. */
const payment = (id: string) => create(PaymentSchema, { id });

function callOf(signal = new AbortController().signal, idempotencyKey?: string): Call {
  return {
    caller: { name: "test", account: "default", scopes: new Set() },
    signal,
    requestId: "r",
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
}

const keyring = await deriveKeyring("default", [new Secret("password")]);
const learned: string[] = [];
let told: Ending["state"][] = [];
const memory = (now = Date.now) =>
  createMemoryLedger({ retentionMs: 60_000, firstLookMs: 60_000, giveUpMs: 3_600_000, now });

function moneyCalls(intents: IntentStore = memory()) {
  const calls = createMoneyCalls({
    intents,
    keyringOf: () => keyring,
    async end(account, intent, ending, entry) {
      if (ending.state === "pending" || entry) learned.push(intent.externalId);
      told = [ending.state];
      const { appended } = await intents.end(account, intent, ending, entry);
      return appended;
    },
    maxWaitMs: 2_000,
    timeoutMs: 30_000,
  });
  type Call = MoneyCall<DescMessage, typeof PaymentSchema>;
  return { ...calls, run: async (call: unknown) => (await calls.run(call as Call)).answer };
}

/** A call to the service that the test answers. */
function pendingCall() {
  const { promise, resolve, reject } = Promise.withResolvers<Payment>();
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

const base = {
  method: "ConfirmPayment",
  kind: EventKind.PAYMENT,
  externalId: "order",
  schema: ConfirmPaymentRequestSchema,
  answerSchema: PaymentSchema,
  entry: () => undefined,
} as const;

const isUnknown = (error: unknown) =>
  error instanceof GatewayError &&
  error.code === "DEADLINE_EXCEEDED" &&
  error.details.outcomeUnknown?.externalId === "order";

test("a caller that goes away after the call was sent gets an unknown outcome", async () => {
  const calls = moneyCalls();
  const leave = new AbortController();
  const upstream = pendingCall();
  // Once the call is sent, the upstream ignores the caller's signal.
  const send = (options: SendOptions) => {
    options.onSent?.();
    return upstream.send({ ...options, signal: new AbortController().signal });
  };
  const outcome = calls.run({ ...base, call: callOf(leave.signal), request: request(), send });
  const refused = assert.rejects(outcome, isUnknown);
  await upstream.started;
  leave.abort();
  await refused;

  // The answer is still recorded, and a shutdown waits for it.
  const idle = calls.idle();
  upstream.answer(payment("late"));
  await idle;
  assert.deepEqual(learned.splice(0), ["order"]);
});

for (const key of [undefined, "key"]) {
  test(`the upstream receives the caller of a call ${key ? "with" : "without"} an Idempotency-Key`, async () => {
    const upstream = pendingCall();
    const call = callOf(undefined, key);
    const { send } = upstream;
    const outcome = moneyCalls().run({ ...base, call, request: request(), send });
    assert.equal((await upstream.started).caller, call.caller);
    upstream.answer(payment("paid"));
    await outcome;
    learned.length = 0;
  });
}

test("a caller that goes away before the call was sent gets no unknown outcome", async () => {
  const calls = moneyCalls();
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

test("only a caller that gets the outcome of an earlier call is told so", async () => {
  const calls = moneyCalls();
  const told: string[] = [];
  const run = (name: string, send: (options: SendOptions) => Promise<Payment>, key = "key") => {
    const call = { ...callOf(undefined, key), onReplayed: () => told.push(name) };
    return calls.run({ ...base, call, request: request(), send });
  };
  const unsent = pendingCall();
  const failed = [run("unsent", unsent.send), run("joined unsent", unsent.send)];
  await unsent.started;
  unsent.fail(new GatewayError("UNAVAILABLE", "refused"));
  for (const call of failed) await assert.rejects(call, { code: "UNAVAILABLE" });
  const upstream = pendingCall();
  const both = [run("first", upstream.send), run("joined", upstream.send)];
  const { onSent } = await upstream.started;
  onSent?.();
  upstream.answer(payment("first"));
  await Promise.all(both);
  assert.deepEqual(told, ["joined"]);
  await run("later", upstream.send);
  assert.deepEqual(told, ["joined", "later"]);
  const declines = async ({ onSent }: SendOptions) => {
    onSent?.();
    throw new GatewayError("FAILED_PRECONDITION", "declined");
  };
  await assert.rejects(run("declined", declines, "other"), { code: "FAILED_PRECONDITION" });
  await assert.rejects(run("declined again", declines, "other"), { code: "FAILED_PRECONDITION" });
  assert.deepEqual(told, ["joined", "later", "declined again"]);
});

test("a key in the input is the key of the header; two different ones are refused", async () => {
  const calls = moneyCalls();
  let sends = 0;
  const send = async ({ onSent }: SendOptions) => {
    onSent?.();
    return payment(`answer ${++sends}`);
  };
  const run = (header: string | undefined, inputIdempotencyKey: string) => {
    const call = { ...callOf(undefined, header), inputIdempotencyKey };
    return calls.run({ ...base, call, request: request(), send });
  };
  await run("k", '"k"');
  await run('"k"', "k");
  await run(undefined, "k");
  assert.equal(sends, 1);
  for (const [header, input] of [
    ["k", "other"],
    [undefined, ""],
    [undefined, "a b"],
  ] as const) {
    await assert.rejects(run(header, input), (error: GatewayError) => {
      assert.equal(error.code, "INVALID_ARGUMENT");
      assert.equal(error.details.fields?.[0]?.path, "idempotencyKey");
      return true;
    });
  }
  assert.equal(sends, 1);
});

test("without a key every call is sent", async () => {
  const calls = moneyCalls();
  let sends = 0;
  const send = async () => payment(`answer ${++sends}`);
  const run = () => calls.run({ ...base, call: callOf(), request: request(), send });
  assert.deepEqual([await run(), await run()], [payment("answer 1"), payment("answer 2")]);
});

test("a key used for another request is refused, and nothing is sent", async () => {
  const calls = moneyCalls();
  let sends = 0;
  const send = async ({ onSent }: SendOptions) => {
    onSent?.();
    return payment(`answer ${++sends}`);
  };
  const run = (amount: string) =>
    calls.run({ ...base, call: callOf(undefined, "key"), request: request(amount), send });
  await run("1.00");
  await assert.rejects(run("2.00"), { code: "ALREADY_EXISTS" });
  assert.equal(sends, 1);
});

test("a key used with another method is refused, also while that call is in flight", async () => {
  const calls = moneyCalls();
  const run = (method: MoneyMethod) =>
    calls.run({
      ...{ ...base, method, call: callOf(undefined, "key"), request: request() },
      send: async ({ onSent }: SendOptions) => {
        onSent?.();
        return payment(method);
      },
    });
  const first = run("CreatePayment");
  const reused = { code: "ALREADY_EXISTS", details: { reason: "IDEMPOTENCY_KEY_REUSED" } };
  await assert.rejects(run("ConfirmPayment"), reused);
  assert.deepEqual(await first, payment("CreatePayment"));
  for (const other of ["CreateRecurrentPayment", "ConfirmPayment", "RequestPayout"] as const) {
    await assert.rejects(run(other), reused);
  }
  assert.deepEqual(await run("CreatePayment"), payment("CreatePayment"));
});

test("a key is bound to its account, also while its call is in flight", async () => {
  const calls = moneyCalls();
  const upstreams = [pendingCall(), pendingCall()];
  const outcomes = upstreams.map(({ send }, n) => {
    const call = callOf(undefined, "key");
    const caller = { ...call.caller, account: `account-${n}` };
    return calls.run({ ...base, call: { ...call, caller }, request: request(), send });
  });
  for (const [n, { started, answer }] of upstreams.entries()) {
    const sent = await Promise.race([started, outcomes[n]]);
    assert.ok(sent && "signal" in sent, "answered with the call of another account");
    sent.onSent?.();
    answer(payment(`p${n}`));
  }
  assert.deepEqual(await Promise.all(outcomes), [payment("p0"), payment("p1")]);
});

test("an unknown outcome is stored under its key", async () => {
  const calls = moneyCalls();
  let sends = 0;
  const send = async ({ onSent }: SendOptions): Promise<Payment> => {
    sends++;
    onSent?.();
    throw new GatewayError("UNKNOWN", "no answer", { outcomeUnknown: { externalId: "order" } });
  };
  const run = () =>
    calls.run({ ...base, call: callOf(undefined, "key"), request: request(), send });
  await assert.rejects(run(), { code: "UNKNOWN" });
  await assert.rejects(run(), {
    code: "UNKNOWN",
    details: { reason: "OUTCOME_UNKNOWN", outcomeUnknown: { externalId: "order" } },
  });
  assert.deepEqual(told, ["unknown"]);
  assert.equal(sends, 1);
});

for (const { words, first, code, isUnknown } of [
  { words: "who waits for its answer elsewhere", first: "waits", code: "UNKNOWN", isUnknown: true },
  {
    words: "control: who never heard of one",
    first: "fails",
    code: "UNAVAILABLE",
    isUnknown: false,
  },
]) {
  test(`the store fails after a key's first call: ${words} gets ${code}`, async () => {
    const store = memory();
    let asked = 0;
    store.begin = async () => {
      if (first === "waits" && asked++ === 0) return { kind: "keyRunning" };
      throw new GatewayError("UNAVAILABLE", "the store does not answer");
    };
    const upstream = pendingCall();
    const call = callOf(undefined, "key");
    const outcome = moneyCalls(store).run({
      ...{ ...base, call, request: request() },
      send: upstream.send,
    });
    await assert.rejects(outcome, (error: GatewayError) => {
      assert.equal(error.code, code);
      assert.equal(error.details.outcomeUnknown?.externalId, isUnknown ? "order" : undefined);
      return true;
    });
    assert.equal(upstream.sends(), 0);
  });
}

test("no call is sent while another one of its method has no answer, whatever the method", async () => {
  const calls = moneyCalls();
  const methods = ["CreatePayment", "CreateRecurrentPayment", "ConfirmPayment", "RequestPayout"];
  for (const method of methods as MoneyMethod[]) {
    let sends = 0;
    const send = async ({ onSent }: SendOptions): Promise<Payment> => {
      sends++;
      onSent?.();
      throw new GatewayError("UNKNOWN", "no answer", { outcomeUnknown: { externalId: "order" } });
    };
    const run = () => calls.run({ ...base, method, call: callOf(), request: request(), send });
    await assert.rejects(run(), { code: "UNKNOWN" });
    await assert.rejects(run(), { code: "ABORTED", details: { reason: "CALL_IN_FLIGHT" } });
    assert.equal(sends, 1, method);
  }
});

test("a shared call continues for the others if its first caller leaves before it is sent", async () => {
  const calls = moneyCalls();
  const leave = new AbortController();
  const upstream = pendingCall();
  const shared = { ...base, request: request(), send: upstream.send };
  const left = calls.run({ ...shared, call: callOf(leave.signal, "key") });
  const refused = assert.rejects(left, { code: "CANCELLED" });
  const stays = calls.run({ ...shared, call: callOf(undefined, "key") });
  await upstream.started;
  leave.abort();
  await refused;
  upstream.answer(payment("first"));
  assert.deepEqual(await stays, payment("first"));
  assert.equal(upstream.sends(), 1);
});

test("if all callers of a key leave before the call is sent, the next caller starts a new one", async () => {
  const calls = moneyCalls();
  const leave = new AbortController();
  const first = pendingCall();
  const left = calls.run({
    ...base,
    request: request(),
    send: first.send,
    call: callOf(leave.signal, "key"),
  });
  const refused = assert.rejects(left, { code: "CANCELLED" });
  await first.started;
  leave.abort();
  await refused;
  const send = async () => payment("second");
  const next = calls.run({ ...base, request: request(), send, call: callOf(undefined, "key") });
  assert.deepEqual(await next, payment("second"));
});

test("RESOURCE_EXHAUSTED is not stored as the answer of a key", async () => {
  const calls = moneyCalls();
  let sends = 0;
  const send = async ({ onSent }: SendOptions): Promise<Payment> => {
    onSent?.();
    if (++sends === 1) throw new GatewayError("RESOURCE_EXHAUSTED", "too many requests");
    return payment("second");
  };
  const run = () =>
    calls.run({ ...base, call: callOf(undefined, "key"), request: request(), send });
  await assert.rejects(run(), { code: "RESOURCE_EXHAUSTED" });
  assert.deepEqual(await run(), payment("second"));
});

test("a refusal is stored under its key with all its details", async () => {
  const calls = moneyCalls();
  let sends = 0;
  const details = { reason: "DECLINED", fields: [{ path: "amount", message: "is too much" }] };
  const send = async ({ onSent }: SendOptions): Promise<Payment> => {
    sends++;
    onSent?.();
    throw new GatewayError("FAILED_PRECONDITION", "declined", details);
  };
  const run = () =>
    calls.run({ ...base, call: callOf(undefined, "key"), request: request(), send });
  await assert.rejects(run(), { code: "FAILED_PRECONDITION", message: "declined", details });
  await assert.rejects(run(), { code: "FAILED_PRECONDITION", message: "declined", details });
  assert.equal(sends, 1);
});

test("a call is not sent if its replica was suspended until it is too late to send it", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  const calls = moneyCalls();
  const written: string[] = [];
  const send = async ({ onSent }: SendOptions): Promise<Payment> => {
    t.mock.timers.tick(60_000);
    try {
      onSent?.();
    } catch (cause) {
      throw new GatewayError("UNAVAILABLE", "not sent", { cause });
    }
    written.push("bytes");
    return payment("late");
  };
  await assert.rejects(calls.run({ ...base, call: callOf(), request: request(), send }), {
    code: "UNAVAILABLE",
  });
  assert.deepEqual(written, []);
  assert.deepEqual(told, ["closed"]);
});

test("a key is forgotten after a day", async () => {
  let nowMs = 0;
  const calls = moneyCalls(memory(() => nowMs));
  let sends = 0;
  const send = async ({ onSent }: SendOptions) => {
    onSent?.();
    return payment(String(++sends));
  };
  const run = () =>
    calls.run({
      ...base,
      call: callOf(undefined, "key"),
      request: request(),
      send,
    });
  assert.equal((await run()).id, "1");
  nowMs = keyRetentionMs - 1;
  assert.equal((await run()).id, "1");
  nowMs = keyRetentionMs + 1;
  assert.equal((await run()).id, "2");
});

test("a key in quotes is the same key as without", async () => {
  const long = "x".repeat(255);
  const sameKeys = [
    ["k", '"k"'],
    [long, `"${long}"`],
    ['a"b\\c', '"a\\"b\\\\c"'],
    ['"', '"\\""'],
    ['"k', '"k'], // A lone quotation mark is part of the key.
  ] as const;
  for (const [plain, quoted] of sameKeys) {
    const calls = moneyCalls();
    let sends = 0;
    const send = async ({ onSent }: SendOptions) => {
      onSent?.();
      return payment(`answer ${++sends}`);
    };
    for (const key of [plain, quoted]) {
      const call = callOf(undefined, key);
      const { id } = await calls.run({ ...base, call, request: request(), send });
      assert.equal(id, "answer 1", key);
    }
    const another = { ...base, call: callOf(undefined, quoted), request: request("2.00"), send };
    await assert.rejects(calls.run(another), { code: "ALREADY_EXISTS" });
  }
});

test("a malformed key is refused", async () => {
  const calls = moneyCalls();
  const quoted = ['""', `"${"x".repeat(256)}"`, '"a" b'];
  for (const key of ["", "a b", "x".repeat(256), "ключ", ...quoted]) {
    await assert.rejects(
      calls.run({
        ...base,
        call: callOf(undefined, key),
        request: request(),
        send: async () => payment(""),
      }),
      { code: "INVALID_ARGUMENT" },
    );
  }
});

/** How often a call is sent that a hundred callers make with one key at each replica. */
async function sendsByReplicas(stores: readonly IntentStore[]): Promise<number> {
  let sends = 0;
  const send = async ({ onSent }: SendOptions) => {
    onSent?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
    return payment(`answer ${++sends}`);
  };
  const replicas = stores.map((store) => moneyCalls(store));
  const outcomes = replicas.flatMap((calls) =>
    Array.from({ length: 100 }, () =>
      calls.run({ ...base, call: callOf(undefined, "key"), request: request(), send }),
    ),
  );
  const answers = new Set((await Promise.all(outcomes)).map(({ id }) => id));
  assert.equal(answers.size, sends);
  return sends;
}

test("a hundred callers with one key at each of three replicas share one call", async () => {
  const shared = memory();
  assert.equal(await sendsByReplicas([shared, shared, shared]), 1);
});

test("control: replicas that share no store make the call once each", async () => {
  assert.equal(await sendsByReplicas([memory(), memory(), memory()]), 3);
});

test("a call is not sent if its replica was suspended until the store's permission was too old", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  const store = memory(() => 0);
  const begin = store.begin.bind(store);
  // The store permits the call, but the process receives that an hour later.
  store.begin = async (...given) => {
    const begun = await begin(...given);
    t.mock.timers.tick(3_600_000);
    return begun;
  };
  const written: string[] = [];
  const send = async ({ onSent }: SendOptions): Promise<Payment> => {
    onSent?.();
    written.push("bytes");
    return payment("late");
  };
  const calls = moneyCalls(store);
  await assert.rejects(calls.run({ ...base, call: callOf(), request: request(), send }));
  assert.deepEqual(written, []);
  assert.deepEqual(told, ["closed"]);
});

test("an unexpected error after the call was sent makes its outcome unknown", async () => {
  const calls = moneyCalls();
  const send = async ({ onSent }: SendOptions): Promise<Payment> => {
    onSent?.();
    throw new TypeError("a bug");
  };
  await assert.rejects(calls.run({ ...base, call: callOf(), request: request(), send }), {
    code: "UNKNOWN",
    details: { reason: "OUTCOME_UNKNOWN", outcomeUnknown: { externalId: "order" } },
  });
  assert.deepEqual(told, ["unknown"]);
});

test("an answer and the end of its call are stored together", async () => {
  const entry = () =>
    paymentEntry(
      create(PaymentSchema, {
        externalId: "order",
        details: { paymentId: "p1", status: PaymentStatus.SUCCESS },
      }),
      { source: EventSource.RESPONSE },
    );
  const send = async ({ onSent }: SendOptions): Promise<Payment> => {
    onSent?.();
    return payment("p1");
  };
  const store = memory();
  const method = "CreatePayment";
  const calls = moneyCalls(store);
  await calls.run({ ...base, method, entry, call: callOf(), request: request(), send });
  assert.deepEqual(await openCalls(store, "default", EventKind.PAYMENT, "order"), []);
  const events = await store.history("default", EventKind.PAYMENT, "order", 10);
  assert.deepEqual(
    events.map(({ paymentId }) => paymentId),
    ["p1"],
  );
  learned.length = 0;
});

test("the payment that an answer or a refusal names is stored as the call's mark", async () => {
  const upstream = (paymentId?: string) => ({
    upstream: create(UpstreamErrorSchema, { code: "declined", ...(paymentId && { paymentId }) }),
  });
  const of = (paymentId: string, status: PaymentStatus) => (): Entry | undefined =>
    paymentEntry(create(PaymentSchema, { externalId: "order", details: { paymentId, status } }), {
      source: EventSource.RESPONSE,
    });
  const creation = { ...base, method: "CreatePayment" } as const;
  const outcomes = [
    [{ ...creation, entry: of("p1", PaymentStatus.SUCCESS) }, payment("p1"), ["p1"], []],
    [{ ...creation, entry: of("p1", PaymentStatus.PENDING) }, payment("p1"), ["p1"], ["p1"]],
    [creation, payment("says nothing of itself"), [], [""]],
    [creation, new GatewayError("FAILED_PRECONDITION", "no", upstream("p1")), ["p1"], []],
    [creation, new GatewayError("FAILED_PRECONDITION", "no", upstream()), [""], []],
    [base, new GatewayError("FAILED_PRECONDITION", "no", upstream("p1")), [""], []],
    [creation, new GatewayError("RESOURCE_EXHAUSTED", "later", upstream()), [], []],
  ] as const;
  for (const [about, outcome, marks, pending] of outcomes) {
    const store = memory();
    const send = async ({ onSent }: SendOptions): Promise<Payment> => {
      onSent?.();
      if (outcome instanceof GatewayError) throw outcome;
      return outcome;
    };
    const run = moneyCalls(store).run({ ...about, call: callOf(), request: request(), send });
    await run.catch(() => {});
    const open = await openCalls(store, "default", EventKind.PAYMENT, "order");
    assert.deepEqual(
      open.map(({ subjectId }) => subjectId),
      pending,
    );
    const next = await store.begin("default", nextIntent);
    assert.ok(next.kind === "started");
    assert.deepEqual(next.intent.answered, marks);
  }
});

const nextIntent: NewIntent = {
  ...{ id: "next", method: "CreatePayment", kind: EventKind.PAYMENT, externalId: "order" },
  ...{ leaseMs: 60_000 },
};

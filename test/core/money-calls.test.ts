import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescMessage } from "@bufbuild/protobuf";
import type { Call } from "../../src/core/core.ts";
import { openOutcome, sealOutcome } from "../../src/core/idempotency.ts";
import { createMoneyCalls, type MoneyCall } from "../../src/core/money-calls.ts";
import { GatewayError } from "../../src/errors.ts";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import {
  type Payment,
  PaymentSchema,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { paymentEntry } from "../../src/ledger/entry.ts";
import { keyRetentionMs } from "../../src/ledger/intents.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Entry } from "../../src/ledger/log.ts";
import { type MoneyMethod, moneyMethods } from "../../src/model/money-methods.ts";
import type { SendOptions } from "../../src/upstream/upstream.ts";
import { createMemoryLedger } from "../ledger/create.ts";
import { openCalls } from "../open-calls.ts";
import { valuesOf } from "../values-of.ts";
import { callOf, keyring } from "./rig.ts";

/** An answer with this id. */
const payment = (id: string) => create(PaymentSchema, { id });

const memory = (now = Date.now) =>
  createMemoryLedger({ retentionMs: 60_000, firstLookMs: 60_000, giveUpMs: 3_600_000, now });

/** What the service does with the `nth` request. */
type Does = (options: SendOptions, nth: number) => Payment | Promise<Payment>;

const answers: Does = ({ onSent }, nth) => {
  onSent?.();
  return payment(`answer ${nth}`);
};
const fails =
  (error: Error): Does =>
  ({ onSent }) => {
    onSent?.();
    throw error;
  };

const entryOf = (answer: Payment) =>
  paymentEntry(answer, { source: EventSource.RESPONSE, externalId: "order" });

interface Given extends Partial<Call> {
  readonly key?: string | undefined;
  readonly account?: string;
  readonly amount?: string;
  /** In place of `externalId` and `amount`. */
  readonly fields?: object;
  readonly method?: MoneyMethod;
  readonly entry?: (answer: Payment) => Entry | undefined;
  readonly does?: Does;
}

/** Calls for the payment `order` that move money. */
function moneyCalls(ledger: Ledger = memory()) {
  /** What each call's end was told to the store. */
  const ended: unknown[] = [];
  let sends = 0;
  const calls = createMoneyCalls({
    ledger: {
      ...{ begin: (...args) => ledger.begin(...args) },
      end(account, intent, ending, entry) {
        ended.push(ending.state);
        return ledger.end(account, intent, ending, entry);
      },
    } satisfies Partial<Ledger> as Ledger,
    keyrings: new Map(["default", "account-0", "account-1"].map((account) => [account, keyring])),
    timeouts: { maxWaitMs: 2_000, timeoutMs: 30_000 },
  });
  async function run(given: Given = {}): Promise<Payment> {
    const { key, account = "default", amount = "1.00", does = answers, ...more } = given;
    const { method = "ConfirmPayment", entry = entryOf, fields, ...call } = more;
    const { answer } = await calls.run({
      call: {
        ...callOf([], call),
        caller: { name: "test", account, scopes: new Set() },
        ...(key !== undefined && { idempotencyKey: key }),
      },
      ...{ method, externalId: "order", entry, answerSchema: PaymentSchema },
      request: create<DescMessage>(moneyMethods[method].method.input, {
        ...(method === "RequestPayout"
          ? { order: { externalId: "order", originalAmount: amount } }
          : (fields ?? { externalId: "order", amount })),
      }),
      send: async (options: SendOptions) => does(options, ++sends),
    } as MoneyCall<typeof PaymentSchema>);
    return answer;
  }
  return { run, ended, sends: () => sends, idle: calls.idle };
}

/** A call to the service that the test answers. */
function pendingCall() {
  const { promise, resolve, reject } = Promise.withResolvers<Payment>();
  const started = Promise.withResolvers<SendOptions>();
  const does: Does = (options) => {
    started.resolve(options);
    options.signal.addEventListener("abort", () =>
      reject(new GatewayError("CANCELLED", "gave up waiting")),
    );
    return promise;
  };
  return { answer: resolve, fail: reject, started: started.promise, does };
}

const isUnknown =
  (code: string) =>
  ({ code: told, details }: GatewayError) =>
    told === code && details.outcomeUnknown?.externalId === "order";

test("a caller that goes away after the call was sent gets an unknown outcome", async () => {
  const { run, ended, idle } = moneyCalls();
  const leave = new AbortController();
  const upstream = pendingCall();
  // Once the call is sent, the upstream ignores the caller's signal.
  const does: Does = (options, nth) => {
    options.onSent?.();
    return upstream.does({ ...options, signal: new AbortController().signal }, nth);
  };
  const refused = assert.rejects(
    run({ signal: leave.signal, does }),
    isUnknown("DEADLINE_EXCEEDED"),
  );
  await upstream.started;
  leave.abort();
  await refused;

  // The answer is still recorded, and a shutdown waits for it.
  assert.deepEqual(ended, []);
  upstream.answer(payment("late"));
  await idle();
  assert.deepEqual(ended, ["pending"]);
});

test("a caller that goes away before the call was sent gets no unknown outcome", async () => {
  const leave = new AbortController();
  const upstream = pendingCall();
  const outcome = moneyCalls().run({ signal: leave.signal, does: upstream.does });
  const refused = assert.rejects(outcome, ({ details }) => !details.outcomeUnknown);
  await upstream.started;
  leave.abort();
  await refused;
});

for (const [name, clock] of [
  ["the machine's clock", Date],
  ["its own clock", performance],
] as const) {
  test(`a call that its process sends only 4 s after it began is not sent, by ${name}`, async (t) => {
    const { run, ended } = moneyCalls();
    const now = clock.now.bind(clock);
    let lateMs = 0;
    t.mock.method(clock, "now", () => now() + lateMs);
    const after =
      (ms: number): Does =>
      ({ onSent }) => {
        lateMs += ms;
        onSent?.();
        return payment("sent");
      };
    await assert.rejects(run({ does: after(4_001) }), /too late to be sent/);
    assert.deepEqual(ended, ["closed"]);
    assert.equal((await run({ does: after(2_000) })).id, "sent");
  });
}

test("the upstream receives the caller of a call with and without an Idempotency-Key", async () => {
  for (const key of [undefined, "key"]) {
    const does: Does = ({ caller }) => payment(caller?.name ?? "none");
    assert.equal((await moneyCalls().run({ key, does })).id, "test");
  }
});

test("only a caller that gets the outcome of an earlier call is told so", async () => {
  const { run } = moneyCalls();
  const told: string[] = [];
  const runAs = (name: string, does: Does, key = "key") =>
    run({ key, does, onReplayed: () => told.push(name) });
  const unsent = pendingCall();
  const failed = [runAs("unsent", unsent.does), runAs("joined unsent", unsent.does)];
  await unsent.started;
  unsent.fail(new GatewayError("UNAVAILABLE", "refused"));
  for (const call of failed) await assert.rejects(call, { code: "UNAVAILABLE" });
  const upstream = pendingCall();
  const both = [runAs("first", upstream.does), runAs("joined", upstream.does)];
  const { onSent } = await upstream.started;
  onSent?.();
  upstream.answer(payment("first"));
  await Promise.all(both);
  assert.deepEqual(told, ["joined"]);
  await runAs("later", upstream.does);
  assert.deepEqual(told.splice(0), ["joined", "later"]);
  const declines = fails(new GatewayError("FAILED_PRECONDITION", "declined"));
  for (const name of ["declined", "declined again"]) {
    await assert.rejects(runAs(name, declines, "other"), { code: "FAILED_PRECONDITION" });
  }
  assert.deepEqual(told, ["declined again"]);
});

test("a key in the input is the key of the header; two different ones are refused", async () => {
  const { run, sends } = moneyCalls();
  await run({ key: "k", inputIdempotencyKey: '"k"' });
  await run({ key: '"k"', inputIdempotencyKey: "k" });
  await run({ inputIdempotencyKey: "k" });
  for (const [key, inputIdempotencyKey] of [
    ["k", "other"],
    [undefined, ""],
    [undefined, "a b"],
  ] as const) {
    await assert.rejects(run({ key, inputIdempotencyKey }), (error: GatewayError) => {
      assert.equal(error.code, "INVALID_ARGUMENT");
      assert.equal(error.details.fields?.[0]?.path, "idempotencyKey");
      return true;
    });
  }
  assert.equal(sends(), 1);
});

test("without a key every call is sent", async () => {
  const { run } = moneyCalls();
  const does: Does = (_, nth) => payment(`${nth}`);
  assert.deepEqual([await run({ does }), await run({ does })], [payment("1"), payment("2")]);
});

const reused = { code: "ALREADY_EXISTS", details: { reason: "IDEMPOTENCY_KEY_REUSED" } };

test("a key used with another method or request is refused, also while its call is in flight", async () => {
  const { run, sends } = moneyCalls();
  const runBy = (method: MoneyMethod) => run({ key: "key", method });
  const first = runBy("CreatePayment");
  await Promise.all([
    assert.rejects(runBy("ConfirmPayment"), reused),
    assert.rejects(run({ key: "key", method: "CreatePayment", amount: "2.00" }), reused),
  ]);
  await first;
  for (const other of ["CreateRecurrentPayment", "ConfirmPayment", "RequestPayout"] as const) {
    await assert.rejects(runBy(other), reused);
  }
  assert.deepEqual(await runBy("CreatePayment"), await first);
  assert.equal(sends(), 1);
});

test("a key used with another method is refused while its call is in flight, even for the same bytes", async () => {
  const { run, sends } = moneyCalls();
  // Fields 1 and 2 of each.
  const first = run({ key: "key", method: "ConfirmPayment" });
  const fields = { amount: "order", currency: "1.00" };
  await assert.rejects(run({ key: "key", method: "CreatePayment", fields }), reused);
  await first;
  assert.equal(sends(), 1);
});

test("an unknown outcome is stored under its key", async () => {
  const { run, sends, ended } = moneyCalls();
  const does = fails(
    new GatewayError("UNKNOWN", "no answer", { outcomeUnknown: { externalId: "order" } }),
  );
  await assert.rejects(run({ key: "key", does }), { code: "UNKNOWN" });
  await assert.rejects(run({ key: "key", does }), {
    ...{ code: "UNKNOWN", details: outcomeUnknown },
  });
  assert.deepEqual([ended, sends()], [["unknown"], 1]);
});

const outcomeUnknown = { reason: "OUTCOME_UNKNOWN", outcomeUnknown: { externalId: "order" } };

test("an unexpected error after the call was sent makes its outcome unknown", async () => {
  const { run, ended } = moneyCalls();
  const does = fails(new TypeError("a bug"));
  await assert.rejects(run({ does }), { code: "UNKNOWN", details: outcomeUnknown });
  assert.deepEqual(ended, ["unknown"]);
});

for (const [words, isRunning, code] of [
  ["who waits for its answer elsewhere", true, "UNKNOWN"],
  ["control: who never heard of one", false, "UNAVAILABLE"],
] as const) {
  test(`the store fails after a key's first call: ${words} gets ${code}`, async () => {
    const store = memory();
    let asked = 0;
    store.begin = async () => {
      if (isRunning && asked++ === 0) return { kind: "keyRunning" };
      throw new GatewayError("UNAVAILABLE", "the store does not answer");
    };
    const { run, sends } = moneyCalls(store);
    await assert.rejects(run({ key: "key" }), (error: GatewayError) => {
      assert.equal(error.code, code);
      assert.equal(error.details.outcomeUnknown?.externalId, isRunning ? "order" : undefined);
      return true;
    });
    assert.equal(sends(), 0);
  });
}

test("a refusal is stored under its key with all its details", async () => {
  const { run, sends } = moneyCalls();
  const details = { reason: "DECLINED", fields: [{ path: "amount", message: "is too much" }] };
  const does = fails(new GatewayError("FAILED_PRECONDITION", "declined", details));
  for (const _ of ["first", "repeat"]) {
    const refusal = { code: "FAILED_PRECONDITION", message: "declined", details };
    await assert.rejects(run({ key: "key", does }), refusal);
  }
  assert.equal(sends(), 1);
});

test("a key is forgotten after a day", async () => {
  let nowMs = 0;
  const { run } = moneyCalls(memory(() => nowMs));
  for (const [atMs, id] of [
    [0, "answer 1"],
    [keyRetentionMs - 1, "answer 1"],
    [keyRetentionMs + 1, "answer 2"],
  ] as const) {
    nowMs = atMs;
    assert.equal((await run({ key: "key" })).id, id);
  }
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
    const { run } = moneyCalls();
    for (const key of [plain, quoted]) assert.equal((await run({ key })).id, "answer 1", key);
    await assert.rejects(run({ key: quoted, amount: "2.00" }), reused);
  }
});

test("a malformed key is refused", async () => {
  const { run } = moneyCalls();
  const quoted = ['""', `"${"x".repeat(256)}"`, '"a" b'];
  for (const key of ["", "a b", "x".repeat(256), "ключ", ...quoted]) {
    await assert.rejects(run({ key }), { code: "INVALID_ARGUMENT" }, key);
  }
});

test("the payment that an answer or a refusal names is stored as the call's mark", async () => {
  const upstream = (paymentId?: string) => ({
    upstream: create(UpstreamErrorSchema, { code: "declined", ...(paymentId && { paymentId }) }),
  });
  const of = (paymentId: string, status: PaymentStatus) => (): Entry | undefined =>
    paymentEntry(create(PaymentSchema, { externalId: "order", details: { paymentId, status } }), {
      ...{ source: EventSource.RESPONSE, call: "call" },
    });
  const refusal = (paymentId?: string) =>
    fails(new GatewayError("FAILED_PRECONDITION", "no", upstream(paymentId)));
  const method = "CreatePayment";
  for (const [about, marks, pending] of [
    [{ method, entry: of("p1", PaymentStatus.SUCCESS) }, ["p1"], []],
    [{ method, entry: of("p1", PaymentStatus.PENDING) }, ["p1"], ["p1"]],
    [{ method, entry: () => undefined }, [], [""]],
    [{ method, entry: of("", PaymentStatus.FAILURE) }, ["? CreatePayment"], []],
    [{ method, does: refusal("p1") }, ["p1"], []],
    [{ method, does: refusal() }, ["? CreatePayment"], []],
    [{ method: "ConfirmPayment", does: refusal("p1") }, ["? ConfirmPayment"], []],
    [
      {
        method,
        does: fails(new GatewayError("RESOURCE_EXHAUSTED", "later", { notAttempted: true })),
      },
      [],
      [],
    ],
  ] as const) {
    const store = memory();
    await moneyCalls(store)
      .run(about)
      .catch(() => {});
    const open = await openCalls(store, "default");
    assert.deepEqual(valuesOf(open, "subjectId"), pending);
    const known = await store.known("default", EventKind.PAYMENT, "order");
    assert.deepEqual(known.marks, marks);
  }
});

const outcomes = {
  one: { answer: create(PaymentSchema, { id: "p1" }) },
  two: { error: new GatewayError("FAILED_PRECONDITION", "declined") },
};

test("a stored answer opens for its own key and for no other", () => {
  const one = sealOutcome(keyring.answers, PaymentSchema, outcomes.one, "one");
  const two = sealOutcome(keyring.answers, PaymentSchema, outcomes.two, "two");
  assert.deepEqual(openOutcome(keyring.answers, PaymentSchema, one, "one"), outcomes.one);
  const told = openOutcome(keyring.answers, PaymentSchema, two, "two");
  assert.ok(told && "error" in told && told.error.code === "FAILED_PRECONDITION");
  assert.equal(openOutcome(keyring.answers, PaymentSchema, two, "one"), undefined);
  assert.equal(openOutcome(keyring.answers, PaymentSchema, one, "two"), undefined);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { errorOfAbort, GatewayError } from "../../src/errors.ts";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { CallOutcome, EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { OperationSchema } from "../../src/gen/payments/v1/operation_pb.ts";
import {
  PaymentOperation,
  PaymentSchema,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import type { ResendCallbackRequest } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { firstEvent } from "../../src/ledger/current.ts";
import { paymentEntry } from "../../src/ledger/entry.ts";
import type { Intent, NewIntent } from "../../src/ledger/intents.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { UnreadableRecord } from "../../src/ledger/record.ts";
import { createReconciler, type ReconcilerOptions } from "../../src/reconcile/reconciler.ts";
import { type Handlers, reportTo } from "../../src/report.ts";
import type { SendOptions, Upstream } from "../../src/upstream/upstream.ts";
import { createMemoryLedger, type MemoryLedgerOptions } from "../ledger/create.ts";
import { snapshotOf } from "../ledger/entries.ts";
import { callBegun } from "../ledger/new-call.ts";
import { openCalls } from "../open-calls.ts";
import { until } from "../until.ts";
import { valuesOf } from "../values-of.ts";

const account = "default";
const externalId = "order";
const { PAYMENT } = EventKind;

type Looked = Ledger["looked"];

function rig(options: Partial<MemoryLedgerOptions> = {}) {
  const settled: string[] = [];
  const log = createMemoryLedger({
    report: reportTo({ settled: ({ by }) => void settled.push(by) }),
    retentionMs: 60_000,
    firstLookMs: 0,
    giveUpMs: 60_000,
    ...options,
  });
  return {
    log,
    /** What settled each call. */
    settled,
    async begin(about: Partial<NewIntent> = {}): Promise<Intent> {
      return await callBegun(log, account, { externalId, ...about });
    },
    async lose(about?: Partial<NewIntent>): Promise<Intent> {
      const intent = await this.begin(about);
      await log.end(account, intent, { state: "unknown" });
      return { ...intent, state: "unknown" };
    },
    async tell(paymentId: string, status: PaymentStatus, of = externalId, operationId?: string) {
      const details = { paymentId, status, ...(operationId && { operationId }) };
      const payment = create(PaymentSchema, { externalId: of, details });
      const entry = paymentEntry(payment, { source: EventSource.CALLBACK });
      assert.ok(entry);
      await log.append(account, entry);
    },
    async dueNow() {
      for (const intent of await this.open()) {
        const { checks, notFound } = intent;
        await log.looked(account, intent, { checks, notFound, inMs: 0 });
      }
    },
    snapshot: () => snapshotOf(log, account, PAYMENT, externalId),
    /** The calls of a payment that are open. */
    open: (of = externalId) => openCalls(log, account, of),
    /** A call that the service has answered as pending. */
    async pending() {
      const ending = { state: "pending", subjectId: "p1", key: "keep" } as const;
      await log.end(account, await this.begin(), ending);
    },
    /** Does this instead of storing the result of a look. */
    onLooked(look: (store: Looked, ...given: Parameters<Looked>) => ReturnType<Looked>) {
      const looked = log.looked.bind(log);
      log.looked = (...given) => look(looked, ...given);
    },
  };
}

interface Circumstances {
  readonly giveUpMs?: number;
  /** Tokens left of the budget of 10. */
  readonly remaining?: number;
  readonly afterMs?: number;
  readonly timeoutMs?: number;
  readonly getOperation?: Upstream["getOperation"];
  /** Default: real timers. */
  readonly sleep?: ReconcilerOptions["sleep"];
  /** Called at each look, before the service is asked. */
  readonly onLook?: () => void;
  /** Default: no round may fail. */
  readonly onFailure?: Handlers["reconcileFailed"];
}

/** Starts a reconciler whose service answers each request for a callback with `resend`. */
function reconcile(
  t: TestContext,
  { log, settled }: ReturnType<typeof rig>,
  resend: (request: ResendCallbackRequest, options: SendOptions) => Promise<void>,
  {
    giveUpMs = 60_000,
    remaining = 10,
    afterMs = 5,
    timeoutMs = 5,
    getOperation,
    onLook,
    sleep,
    onFailure = ({ error }) => assert.fail(error as Error),
  }: Circumstances = {},
) {
  const given = { settled, givenUp: 0, probes: 0 };
  const reconciler = createReconciler({
    accounts: new Map([
      [
        account,
        {
          upstream: { resendCallback: resend, getOperation } as unknown as Upstream,
          bucket: {
            source: "own" as const,
            waiting: { money: 0, read: 0 },
            take: () => assert.fail("the upstream takes the tokens"),
            status: () => {
              onLook?.();
              return { limit: 10, remaining, remainingForReads: remaining, resetSeconds: 0 };
            },
            close: async () => {},
          },
        },
      ],
    ]),
    ledger: log,
    afterMs,
    giveUpMs,
    timeoutMs,
    ...(sleep && { sleep }),
    report: reportTo({
      probed: () => void given.probes++,
      givenUp: () => void given.givenUp++,
      reconcileFailed: onFailure,
    }),
  });
  // The reconciler's own timers do not keep the process alive.
  const alive = setInterval(() => {}, 1_000);
  t.after(async () => {
    clearInterval(alive);
    await reconciler.close();
  });
  return given;
}

function told(code: string, paymentId?: string): GatewayError {
  const upstream = create(UpstreamErrorSchema, { code, ...(paymentId && { paymentId }) });
  return new GatewayError("NOT_FOUND", code, { upstream });
}

const notFound = async () => {
  throw told("transaction_not_found");
};

for (const paymentId of ["p9", undefined]) {
  test(`an already-paid answer settles a lost call as paid (payment_id ${paymentId})`, async (t) => {
    const books = rig();
    await books.lose();
    const given = reconcile(t, books, async () => {
      throw told("transaction_already_paid", paymentId);
    });
    await until(() => given.settled.length > 0 || books.open().then((open) => open.length === 0));
    const event = firstEvent(await books.log.known(account, PAYMENT, externalId));
    assert.ok(event?.resource.case === "payment");
    assert.equal(event.resource.value.details?.status, PaymentStatus.SUCCESS);
    assert.equal(event.source, EventSource.RECONCILIATION);
    assert.equal(event.paymentId, paymentId);
    assert.equal(event.final, true);
  });
}

test("a record that cannot be read holds up the look-up of no other payment", async (t) => {
  const books = rig();
  const { log: intents } = books;
  // Both ways in: a call whose outcome was lost, and an operation that no call made.
  for (const id of ["broken", "sound"]) await books.lose({ externalId: id });
  for (const id of ["told-broken", "told"]) await books.tell("p1", PaymentStatus.PENDING, id);
  const known = intents.known.bind(intents);
  const unreadable = new Set<string>();
  intents.known = async (account, kind, of) => {
    if (!of.endsWith("broken")) return known(account, kind, of);
    unreadable.add(of);
    throw new UnreadableRecord(`payment:${of}`);
  };
  const asked = new Set<string>();
  reconcile(t, books, async ({ externalId }) => void asked.add(externalId));
  await until(async () => asked.size === 2 && unreadable.size === 2);
  assert.deepEqual([...asked].sort(), ["sound", "told"]);
});

test("NOT_FOUND answers count only if they come in a row", async (t) => {
  const books = rig();
  const lost = await books.lose();
  let asked = 0;
  const given = reconcile(t, books, async () => {
    // By now a delayed request would long have arrived.
    await delay(40);
    if (++asked % 3 !== 0) throw told("transaction_not_found");
  });
  await until(async () => {
    await books.dueNow();
    return given.probes >= 6;
  });
  const [open] = await books.open();
  assert.equal(open?.id, lost.id);
  assert.deepEqual(given.settled, []);
});

for (const [least, times] of [
  ["five times RECONCILE_AFTER", { afterMs: 10_000 }],
  ["twice the time of a look-up", { afterMs: 1_000, timeoutMs: 25_000 }],
] as const) {
  test(`three NOT_FOUND answers settle a lost call only ${least} after its start`, async (t) => {
    let nowMs = 1_000_000;
    const books = rig({ now: () => nowMs });
    const lost = await books.lose();
    const given = reconcile(t, books, notFound, { ...times, sleep: () => delay(1) });
    const looksUntil = (isDone: () => boolean) =>
      until(async () => {
        // Makes each look due at once.
        await books.dueNow();
        return isDone();
      });
    nowMs += 49_999;
    await looksUntil(() => given.probes >= 4);
    const [open] = await books.open();
    assert.deepEqual([open?.id, (open?.notFound ?? 0) >= 3], [lost.id, true]);
    assert.deepEqual(given.settled, []);
    nowMs += 1;
    await looksUntil(() => given.settled.length > 0);
    assert.deepEqual(given.settled, ["notFound"]);
    await books.begin();
  });
}

test("a call that the service has answered never becomes NOT_DONE", async (t) => {
  const books = rig();
  await books.pending();
  const given = reconcile(t, books, async () => {
    await delay(20);
    throw told("transaction_not_found");
  });
  await until(async () => {
    await books.dueNow();
    return given.probes >= 5;
  });
  assert.equal((await books.open()).length, 1);
  assert.deepEqual(given.settled, []);
});

test("each further pause between two looks is twice as long", async (t) => {
  const books = rig();
  await books.lose();
  const pausesMs: number[] = [];
  books.onLooked((looked, of, intent, next) => {
    pausesMs.push(next.inMs);
    return looked(of, intent, { ...next, inMs: 0 });
  });
  const given = reconcile(t, books, async () => {}, { afterMs: 1_000, giveUpMs: 600_000 });
  await until(() => given.probes >= 6);
  for (const [n, pauseMs] of pausesMs.slice(0, 6).entries()) {
    const wholeMs = 1_000 * 2 ** (n + 1);
    // With a jitter of a fifth.
    assert.ok(pauseMs >= 0.8 * wholeMs && pauseMs <= 1.2 * wholeMs, `${n}: ${pauseMs}`);
  }
});

test("looks less and less often while the store does not take what the service said", async (t) => {
  const books = rig();
  await books.lose();
  let takes = false;
  books.onLooked(async (looked, of, intent, next) => {
    if (!takes) throw new GatewayError("UNAVAILABLE", "the disk is full");
    return looked(of, intent, { ...next, inMs: 0 });
  });
  const pausesMs: number[] = [];
  const given = reconcile(t, books, async () => {}, {
    afterMs: 4_000,
    onFailure: () => {},
    async sleep(ms) {
      pausesMs.push(ms);
      takes ||= pausesMs.length === 6;
      await delay(1);
    },
  });
  await until(() => given.probes >= 7);
  assert.deepEqual(pausesMs.slice(0, 7), [1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 1_000]);
});

test("a long pause does not delay giving a call up to an operator", async (t) => {
  const books = rig();
  const lost = await books.lose();
  const looked = Promise.withResolvers<number>();
  books.onLooked((store, of, intent, next) => {
    looked.resolve(books.log.nowMs(account) + next.inMs);
    return store(of, intent, next);
  });
  // Without that limit, the first pause would be about half an hour.
  reconcile(t, books, async () => {}, { afterMs: 1_000_000, giveUpMs: 600_000 });
  const lateMs = (await looked.promise) - lost.startedAtMs - 600_000;
  // Just after the give-up time, so that the next look is the last; not half an hour later.
  assert.ok(lateMs > 0 && lateMs < 300_000, `${lateMs}`);
});

const anotherFailed = create(OperationSchema, {
  externalId,
  status: PaymentStatus.FAILURE,
  details: { operationId: "operation-2" },
});

for (const [what, answer] of [
  ["is refused", () => Promise.reject(told("access_not_allowed"))],
  ["says no status", async () => create(OperationSchema, { externalId })],
  ["is about another attempt", async () => anotherFailed],
] satisfies Array<[string, Upstream["getOperation"]]>) {
  test(`if operation info ${what}, the callback is requested`, async (t) => {
    const books = rig();
    await books.pending();
    await books.tell("p1", PaymentStatus.PENDING, externalId, "operation-1");
    const asked: string[] = [];
    reconcile(
      t,
      books,
      async ({ operation }) => {
        asked.push(`callback of ${operation}`);
      },
      {
        getOperation: async ({ operationId }) => {
          asked.push(operationId);
          return answer();
        },
      },
    );
    await until(() => asked.length >= 2);
    assert.deepEqual(asked.slice(0, 2), ["operation-1", `callback of ${PaymentOperation.PAYMENT}`]);
    const [payment] = (await books.snapshot())?.operations ?? [];
    assert.equal(payment?.status, "pending");
  });
}

for (const [what, code, upstream] of [
  // A bare 404 may come from a proxy.
  ["an answer without an Error object", "NOT_FOUND", { httpStatus: 404 }],
  ["a failure of the service", "UNAVAILABLE", { code: "transaction_not_found" }],
  ["a failure inside the service", "INTERNAL", { code: "internal_error" }],
  ["a rate limit", "RESOURCE_EXHAUSTED", { code: "too_many_requests" }],
] as const) {
  test(`${what} settles nothing and is not counted`, async (t) => {
    const books = rig();
    const lost = await books.lose();
    const given = reconcile(t, books, async () => {
      throw new GatewayError(code, what, { upstream: create(UpstreamErrorSchema, upstream) });
    });
    await until(() => given.probes >= 4);
    const [open] = await books.open();
    assert.deepEqual([open?.id, open?.notFound, open?.checks], [lost.id, 0, 0]);
  });
}

test("a payment for which the service fails does not hold up others", async (t) => {
  const books = rig();
  await books.lose({ externalId: "poison" });
  await books.lose();
  const given = reconcile(t, books, async (request) => {
    if (request.externalId === "poison") throw new GatewayError("UNAVAILABLE", "HTTP 500");
    await books.tell("p1", PaymentStatus.FAILURE);
  });
  await until(() => given.settled.length > 0);
  assert.equal((await books.open()).length, 0);
  assert.equal((await books.open("poison")).length, 1);
});

for (const [as, isKnownAs] of [
  ["what it is", (operation: unknown) => operation === PaymentOperation.RECURRENT],
  ["another operation", (operation: unknown) => operation !== PaymentOperation.RECURRENT],
] as const) {
  test(`a recurrent payment that the service knows as ${as} is not taken as not done`, async (t) => {
    const books = rig();
    await books.lose({ method: "CreateRecurrentPayment" });
    const asked = new Set<PaymentOperation | undefined>();
    const given = reconcile(t, books, async ({ operation }) => {
      asked.add(operation);
      if (!isKnownAs(operation)) throw told("transaction_not_found");
    });
    await until(() => given.probes >= 5);
    assert.equal((await books.open()).length, 1);
    const [first, ...others] = asked;
    assert.equal(first, PaymentOperation.RECURRENT);
    assert.equal(others.length > 0, as === "another operation", "it is asked for no further");
  });
}

test("an event that arrives before the third NOT_FOUND outweighs it", async (t) => {
  const books = rig();
  await books.lose();
  let asked = 0;
  reconcile(t, books, async () => {
    if (++asked === 3) {
      // Long enough for NOT_FOUND answers to count.
      await delay(40);
      await books.tell("p1", PaymentStatus.PENDING);
    }
    throw told("transaction_not_found");
  });
  const outcome = async () =>
    (await books.log.history(account, PAYMENT, externalId, 10)).at(-1)?.callOutcome;
  await until(async () => (await outcome()) === CallOutcome.SETTLED);
  const [open] = await books.open();
  assert.deepEqual([open?.state, open?.subjectId], ["pending", "p1"]);
});

test("a call that another process has ended meanwhile is not published as NOT_DONE", async (t) => {
  const books = rig();
  const lost = await books.lose();
  let asked = 0;
  const given = reconcile(t, books, async () => {
    if (++asked === 3) {
      await delay(40);
      await books.log.end(account, lost, { state: "closed", key: "keep" });
    }
    throw told("transaction_not_found");
  });
  await until(() => given.probes >= 3);
  await books.lose({ externalId: "other" });
  // The second call is looked up after the first one.
  await until(() => given.probes >= 4);
  const outcomes = await books.log.history(account, PAYMENT, externalId, 10);
  assert.deepEqual(valuesOf(outcomes, "callOutcome"), [CallOutcome.UNKNOWN]);
  assert.deepEqual(given.settled, []);
});

test("while half of the tokens are left no look asks the service, but an event settles a call", async (t) => {
  const books = rig();
  await books.lose();
  let looks = 0;
  const onLook = () => void looks++;
  const asks = async () => assert.fail("asked");
  const given = reconcile(t, books, asks, { remaining: 5, onLook });
  await until(async () => {
    // An event that makes a call due ends the rest between two rounds.
    await books.tell("elsewhere", PaymentStatus.PENDING, "another");
    return looks >= 3;
  });
  assert.equal((await books.open()).length, 1);
  await books.tell("p1", PaymentStatus.SUCCESS);
  await until(() => given.settled.length > 0);
  assert.deepEqual([given.settled, given.probes], [["event"], 0]);
});

for (const [when, state] of [
  ["was lost", "unknown"],
  ["was running", "running"],
] as const) {
  test(`a call that ${when} before a long absence is looked up before it is given up`, async (t) => {
    let nowMs = Date.now();
    const books = rig({ now: () => nowMs });
    await (state === "unknown" ? books.lose() : books.begin());
    nowMs += 600_000;
    let asked = 0;
    const resend = async () => {
      // The service is not back at once, either; its callback comes after the answer.
      if (++asked < 3) throw new GatewayError("UNAVAILABLE", "no route");
      if (asked === 4) await books.tell("p1", PaymentStatus.SUCCESS);
    };
    const given = reconcile(t, books, resend, {
      ...{ afterMs: 1_000, giveUpMs: 60_000 },
      async sleep(ms) {
        nowMs += Math.ceil(ms);
        await delay(1);
      },
    });
    await until(() => given.settled.length > 0 || given.givenUp > 0);
    assert.deepEqual([given.settled, given.givenUp], [["resend"], 0]);
  });
}

test("a call is given up though the service has been away since a long absence", async (t) => {
  let nowMs = Date.now();
  const books = rig({ now: () => nowMs });
  await books.lose();
  nowMs += 600_000;
  const away = async () => {
    throw new GatewayError("UNAVAILABLE", "no route");
  };
  const given = reconcile(t, books, away, {
    ...{ afterMs: 1_000, giveUpMs: 60_000 },
    async sleep(ms) {
      nowMs += Math.ceil(ms);
      await delay(1);
    },
  });
  await until(() => given.givenUp > 0);
  await books.begin();
});

test("a call is given up though callers leave no budget for a look", async (t) => {
  const books = rig();
  await books.lose();
  const given = reconcile(t, books, async () => {}, { giveUpMs: 30, remaining: 5 });
  await until(() => given.givenUp > 0);
  assert.equal(given.probes, 0);
});

test("a look-up that gets no answer ends in time, and the next one follows", async (t) => {
  const books = rig();
  await books.lose();
  const given = reconcile(t, books, async (_, { signal }) => {
    await once(signal, "abort");
    throw errorOfAbort(signal);
  });
  await until(() => given.probes >= 2);
});

test("one holder at a time has the lease of an account, until it does not renew it", async () => {
  let nowMs = 1_000;
  const { log } = rig({ now: () => nowMs });
  const lease = (holder: string, of = account) => log.lease(of, holder, 500);
  assert.equal(await lease("me"), true);
  assert.deepEqual([await lease("you"), await lease("you", "other")], [false, true]);
  nowMs += 500;
  assert.deepEqual([await lease("you"), await lease("me")], [false, true]);
  nowMs += 500;
  assert.equal(await lease("you"), false, "it was renewed");
  nowMs += 1;
  assert.deepEqual([await lease("you"), await lease("me")], [true, false]);
});

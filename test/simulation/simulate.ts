import { create } from "@bufbuild/protobuf";
import type { Call } from "../../src/core/core.ts";
import type { RunningCore } from "../../src/core/create-core.ts";
import { GatewayError } from "../../src/errors.ts";
import { type Event, WaitUntil } from "../../src/gen/payments/v1/event_pb.ts";
import { StreamEventsRequestSchema } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import {
  PaymentOperation,
  PaymentState,
  PaymentStateSchema,
  PaymentStatusSchema,
} from "../../src/gen/payments/v1/payment_pb.ts";
import {
  ConfirmPaymentRequestSchema,
  CreatePaymentRequestSchema,
  CreateRecurrentPaymentRequestSchema,
  GetPaymentRequestSchema,
  ListPaymentsRequestSchema,
  ResendCallbackRequestSchema,
  WatchPaymentRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutState, PayoutStateSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import {
  GetPayoutRequestSchema,
  ListPayoutsRequestSchema,
  RequestPayoutRequestSchema,
  WatchPayoutRequestSchema,
} from "../../src/gen/payments/v1/payout_service_pb.ts";
import { readEvent } from "../../src/ledger/stored-event.ts";
import {
  type CallOutcome,
  type CallRecord,
  type EndRecord,
  type History,
  type ListedRecord,
  statesListed,
  type WatcherRecord,
} from "./history.ts";
import { type Account, accounts, keyringOf, nameIn, partsOf } from "./merchant.ts";
import { createStoreNetwork } from "./network.ts";
import { isPayout, type PayStep, type Plan, type Step, type WatchStep } from "./plan.ts";
import { createRecorder, inCall } from "./recorder.ts";
import { Replica, times } from "./replica.ts";
import { epochMs, installVirtualTime, Scheduler } from "./scheduler.ts";
import { createService } from "./service.ts";
import type { StoreOptions, Stores } from "./stores/stores.ts";
import { eventOf, nameOf } from "./words.ts";

installVirtualTime();

/** Opens the stores of one simulation. */
export type OpenStores = (options: StoreOptions) => Stores;

/** How long a simulation may take to settle after its last step, in milliseconds. */
const quietMs = 150_000;

/** Runs a plan, from its first step until nothing is pending. */
export async function simulate(plan: Plan, openStores: OpenStores): Promise<History> {
  const { steps, perSecond, replication, flushesAfterMs, answersTwice = false } = plan;
  const { maxWaitMs, timeoutMs, afterMs: firstLookMs, giveUpMs } = times;
  const scheduler = new Scheduler(plan.seed);
  const recorder = createRecorder(() => scheduler.nowMs);
  const network = createStoreNetwork(scheduler, recorder);
  const replicas: Replica[] = [];
  const service = createService({
    ...{ scheduler, recorder, perSecond, timeoutMs, answersTwice },
    targets: () => replicas.filter(({ isUp }) => isUp),
  });
  const stores = scheduler.prepare(() =>
    openStores({
      ...{ scheduler, network, recorder, perSecond, replication },
      ...{ maxWaitMs, firstLookMs, giveUpMs, flushesAfterMs },
    }),
  );
  /** Steps that have not ended. */
  let stepsUnderWay = 0;
  /** Watchers that are not connected yet, or not again. */
  const outside = new Set<string>();
  /** All callers and watchers: at the end they leave, or Node.js would keep what they wait for. */
  const allLeaving = new Set<AbortController>();
  let isOver = false;
  let ended: Pick<History, "log" | "ends" | "listed" | "gateways"> | undefined;

  scheduler.after(0, () => {
    for (let n = 0; n < plan.replicas; n++) {
      const replica = new Replica(`gateway-${n}`, stores, service.connectionsOf, plan.aheadMs?.[n]);
      replicas.push(replica);
      replica.start();
    }
  });
  let lastMs = 0;
  // The service fails in ways of its own, and each write may take as long as the replica lags.
  if (answersTwice || (replication?.lagMs ?? 0) >= 200) {
    recorder.troubles.push({ fromMs: 0, toMs: Infinity });
  }
  for (const step of steps) {
    if (step.do === "pay") service.expect(step.id, { ...step, held: step.held ?? false });
    lastMs = Math.max(lastMs, step.atMs + ("forMs" in step ? step.forMs : 0));
    scheduler.after(startMs + step.atMs, () => doStep(step));
  }
  scheduler.after(startMs + lastMs + 50, () => void finish(lastMs + quietMs));
  const end = () => {
    for (const replica of replicas) replica.close();
    for (const leaving of allLeaving) leaving.abort();
  };
  try {
    await scheduler.run(() => ended !== undefined, lastMs + 2 * quietMs, end);
  } finally {
    await stores.close();
  }
  if (!ended) throw new Error("the simulation did not come to its end");
  return recorder.history(ended);

  function doStep(step: Step): void {
    switch (step.do) {
      case "pay":
        void whileUnderWay(pay(step));
        return;
      case "watch":
        void watch(step);
        return;
      case "look":
        void whileUnderWay(look(nameOfStep(step), replicaAt(step.replica)));
        return;
      case "elsewhere":
        service.happen(step.account ?? accounts[0], step.externalId, step.what);
        return;
      case "burst":
        service.burst(step.account ?? accounts[0], step.callbacks, step.externalId);
        return;
      case "misread":
        void whileUnderWay(misread(replicaAt(step.replica)));
        return;
      case "rush":
        for (let n = 0; n < step.calls; n++) {
          void whileUnderWay(ask(replicaAt(step.replica)));
        }
        return;
      case "pause":
      case "suspend":
      case "kill":
      case "powerOff":
        stop(step.do, replicaAt(step.replica), step.forMs);
        return;
      case "store": {
        const replica = step.replica === "all" ? undefined : replicaAt(step.replica).name;
        const { trouble: kind, share, forMs } = step;
        recorder.line("store", replica ?? "all", `${kind} for ${forMs} ms (${share})`);
        mayPart(forMs);
        trouble(forMs);
        network.begin({ kind, replica, share, untilMs: scheduler.nowMs + forMs });
        return;
      }
      case "replica":
        recorder.line("store", "all", `nothing reaches its replica for ${step.forMs} ms`);
        trouble(step.forMs);
        stores.holdReplica?.(step.forMs);
        return;
      case "failOver":
        recorder.line("store", "all", `its replica takes over, ${step.aheadMs} ms ahead`);
        mayPart(0);
        trouble(5_000);
        void whileUnderWay(stores.failOver?.(step.aheadMs) ?? Promise.resolve());
        return;
      case "service":
        recorder.line("service", "all", `${step.trouble} for ${step.forMs} ms`);
        trouble(step.forMs);
        service.trouble = step.trouble;
        scheduler.after(step.forMs, () => {
          service.trouble = undefined;
        });
        return;
      case "limit":
        recorder.line("service", "all", `${step.perSecond} requests a second`);
        trouble(12_000);
        service.limit(step.perSecond);
    }
  }

  function trouble(forMs: number): void {
    const { nowMs: fromMs } = scheduler;
    recorder.troubles.push({ fromMs, toMs: fromMs + forMs });
  }

  /**
   * Notes that some gateways may go on without the shared budget for now; they return soon after.
   */
  function mayPart(forMs: number): void {
    if (!stores.sharesBudget) return;
    const { nowMs: fromMs } = scheduler;
    const gateways = plan.replicas;
    recorder.apart.push({ fromMs, toMs: fromMs + forMs + 2_500, gateways });
  }

  /** Pauses or kills a process, which runs again after `forMs`. */
  function stop(
    how: "pause" | "suspend" | "kill" | "powerOff",
    replica: Replica,
    forMs: number,
  ): void {
    const { process } = replica;
    if (process.isDead || process.isPaused) return;
    const fromMs = scheduler.nowMs;
    const absence = { replica: replica.name, fromMs, toMs: fromMs + forMs };
    recorder.absences.push(absence);
    recorder.line(replica.name, replica.name, `${how} for ${forMs} ms`);
    const isBack = how === "pause" || how === "suspend";
    if (isBack) process.pause();
    else replica.kill();
    if (how === "powerOff") stores.powerOff?.();
    scheduler.after(forMs, () => {
      recorder.line(replica.name, replica.name, "runs again");
      if (isBack) process.resume(how === "suspend" ? forMs : 0);
      else replica.start();
    });
  }

  async function whileUnderWay(work: Promise<unknown>): Promise<void> {
    stepsUnderWay++;
    await work;
    stepsUnderWay--;
  }

  async function pay(step: PayStep): Promise<void> {
    const { leavesAfterMs: _, ...patient } = step;
    const echoes = step.echoes.map(async ({ afterMs, replica, stays }, n) => {
      await scheduler.wait(afterMs);
      await payOnce(stays ? patient : step, `${step.id}e${n}`, replicaAt(replica));
    });
    for (let tries = 0; tries <= step.retries; tries++) {
      const replica = replicaAt(step.replica + tries);
      const { outcome, error } = await payOnce(step, `${step.id}#${tries}`, replica);
      // Repeats only a call that surely did nothing: answers and unknown outcomes are final.
      if (outcome !== "refused" || error?.startsWith("ALREADY_EXISTS")) break;
      await scheduler.wait(scheduler.random.between(50, 900));
    }
    await Promise.all(echoes);
  }

  /** One call of a caller, until it has its answer or none can come. */
  async function payOnce(
    step: PayStep,
    id: string,
    replica = replicaAt(step.replica + 1),
  ): Promise<CallRecord> {
    const { method, key, deadlineMs, leavesAfterMs, waits, account = accounts[0] } = step;
    const externalId = nameOfStep(step);
    const beganMs = scheduler.nowMs;
    const record: CallRecord = {
      ...{ id, request: step.id, account, key, method, externalId, replica: replica.name, beganMs },
      ...(waits && { waits }),
      ...(deadlineMs !== undefined && { deadlineMs: beganMs + deadlineMs }),
    };
    recorder.calls.push(record);
    const keyed = key === undefined ? "" : ` with ${key}`;
    const by = deadlineMs === undefined ? "" : ` within ${deadlineMs} ms`;
    recorder.line("callers", replica.name, `${id}: ${method} ${externalId}${keyed}${by}`);
    const leaving = new AbortController();
    allLeaving.add(leaving);
    const timers: (() => void)[] = [];
    // The gateway reads the deadline by its own wall clock.
    const dueMs = record.deadlineMs && record.deadlineMs + replica.process.aheadMs;
    const call = callOf(account, leaving.signal, id, key, dueMs);
    const answered = await at(replica, async (core) => {
      if (deadlineMs !== undefined) {
        const passed = () => leaving.abort(new DOMException("the deadline passed", "TimeoutError"));
        timers.push(scheduler.after(Math.max(0, deadlineMs - 1), passed, replica.process));
      }
      if (leavesAfterMs !== undefined) {
        timers.push(scheduler.after(leavesAfterMs, () => leaving.abort(), replica.process));
      }
      return inCall(id, () => callMoney(core, step, call));
    });
    for (const stop of timers) stop();
    if (leavesAfterMs !== undefined && scheduler.nowMs >= beganMs + leavesAfterMs) {
      record.outcome = "gone";
    } else {
      Object.assign(record, answered);
      if (answered.outcome !== "gone") record.endedMs = scheduler.nowMs;
    }
    const { outcome, state = "", paymentId = "", error = "" } = record;
    const told = [outcome, state, paymentId, error].filter(Boolean).join(" ");
    recorder.line(replica.name, "callers", `${id}: ${told}`);
    return record;
  }

  /** Runs `work` at a gateway, with latency both ways; `gone` if its process dies meanwhile. */
  function at(
    replica: Replica,
    work: (core: RunningCore) => Promise<Partial<CallRecord>>,
  ): Promise<Partial<CallRecord>> {
    return new Promise((resolve) => {
      const { process } = replica;
      if (process.isDead) return resolve({ outcome: "refused", error: "UNAVAILABLE not there" });
      const stopDeath = process.onDeath(() => resolve({ outcome: "gone" }));
      const back = (answer: Partial<CallRecord>) => {
        scheduler.after(latencyMs(), () => {
          stopDeath();
          resolve(answer);
        });
      };
      scheduler.after(
        latencyMs(),
        () => {
          // The gateway does not listen yet.
          if (!replica.isUp) return back({ outcome: "refused", error: "UNAVAILABLE not there" });
          replica.core.then(work).then(back, (error) => back(outcomeOf(error)));
        },
        process,
      );
    });
  }

  async function look(
    externalId: string,
    replica: Replica,
  ): Promise<Partial<EndRecord> | undefined> {
    const askedMs = scheduler.nowMs;
    let found: Partial<EndRecord> | undefined;
    const record = await at(replica, async (core) => {
      const { account } = partsOf(externalId);
      const call = callOf(account, new AbortController().signal, "look");
      found = await inCall("look", () => lookUp(core, externalId, call));
      return { state: found.state as string };
    });
    const { state } = record.error?.startsWith("NOT_FOUND") ? { state: "NOT_FOUND" } : record;
    recorder.line(replica.name, "callers", `${externalId} is ${state ?? record.error}`);
    if (state === undefined) return undefined;
    recorder.looks.push({ externalId, askedMs, atMs: scheduler.nowMs, state });
    return found ?? { state };
  }

  /** A cheap call that takes a token. */
  async function ask(replica: Replica): Promise<void> {
    await at(replica, async (core) => {
      const call = callOf(accounts[0], new AbortController().signal, "rush");
      const about = { externalId: "nothing", operation: PaymentOperation.PAYMENT };
      const request = create(ResendCallbackRequestSchema, about);
      await inCall("rush", () => core.resendCallback(request, call));
      return {};
    });
  }

  /** Watches with what is no cursor of this account. */
  async function misread(replica: Replica): Promise<void> {
    const [account, other] = accounts;
    const shown = recorder.shown.findLast((event) => event.account === account);
    if (!shown) return;
    const { cursor } = shown;
    const ways = [
      { cursor: cursor.slice(1), of: account, expected: "INVALID_ARGUMENT" },
      { cursor: `0${cursor}`, of: account, expected: "INVALID_ARGUMENT" },
      { cursor: `${cursor}0`, of: account, expected: "INVALID_ARGUMENT" },
      { cursor, of: other, expected: "OUT_OF_RANGE" },
    ] as const;
    for (const { cursor, of, expected } of ways) {
      const { error, outcome } = await at(replica, async (core) => {
        const leaving = new AbortController();
        // Only the beginning counts: nothing is read.
        const call: Call = {
          ...callOf(of, leaving.signal, "misread"),
          onOpen: () => leaving.abort(),
        };
        for await (const _ of streamOf(core, undefined, { after: cursor }, call)) break;
        return {};
      });
      const told = error?.split(" ")[0] ?? "opened";
      // Whoever reaches no gateway or no store is not answered.
      if (outcome !== "gone" && told !== "UNAVAILABLE")
        recorder.misread.push({ cursor, expected, told });
    }
  }

  /** Watches, and resumes behind its cursor each time that its connection is cut. */
  async function watch(step: WatchStep): Promise<void> {
    const { id: name, replica: first, cutsAfterMs, pushes = 0, untilFinal = false } = step;
    const { account = accounts[0] } = step;
    const externalId = step.externalId && nameIn(account, step.externalId);
    const fromStart = step.fromStart === true && externalId !== undefined;
    let id = name;
    const begin = (): WatcherRecord => {
      const watcher = { id, account, externalId, untilFinal, connected: [] };
      const begun = fromStart ? { ...watcher, from: "" } : watcher;
      recorder.watchers.set(id, begun);
      return begun;
    };
    let watcher = begin();
    let cursor: string | undefined;
    let failures = 0;
    outside.add(name);
    for (let connection = 0; !isOver; connection++) {
      const replica = replicaAt(first + connection);
      const { process } = replica;
      const leaving = new AbortController();
      allLeaving.add(leaving);
      const isDone = Promise.withResolvers<void>();
      const cutMs = cutsAfterMs[connection] ?? Infinity;
      const stopCut = scheduler.after(cutMs, () => isDone.resolve());
      const stopDeath = process.onDeath(() => isDone.resolve());
      if (process.isDead) isDone.resolve();
      let connected = true;
      let place = 0;
      const period = { fromMs: Infinity, toMs: Infinity };
      const resumed = cursor === undefined ? undefined : { watcher: id, cursor, refused: false };
      if (resumed) recorder.resumed.push(resumed);
      /** Delivers to the watcher over one connection, so in order. */
      const tell = (work: () => void) => {
        place = Math.max(place, scheduler.nowMs + latencyMs());
        scheduler.after(place - scheduler.nowMs, () => connected && work());
      };
      /** The watch of a payment begins with its current state, unless it has a place in the log. */
      let isState = externalId !== undefined && resumed === undefined && !fromStart;
      const show = (event: Event, isFirst: boolean) => {
        isState = false;
        const shown = eventOf(event, epochMs, account);
        tell(() => {
          cursor = shown.cursor;
          watcher.from ??= shown.cursor;
          recorder.shown.push({ ...shown, watcher: id, atMs: scheduler.nowMs, isFirst });
          recorder.line(replica.name, id, `${shown.externalId} ${shown.state}`);
        });
      };
      const call: Call = {
        ...callOf(account, leaving.signal, id),
        ...(pushes > 0 && {
          push(event) {
            const isWritten = scheduler.random.chance(pushes);
            if (isWritten) show(event, false);
            return isWritten;
          },
        }),
        onOpen: (from) => {
          period.fromMs = scheduler.nowMs;
          watcher.connected?.push(period);
          outside.delete(name);
          if (from !== undefined) isState = false;
          tell(() => {
            if (from === undefined) return;
            cursor ??= from;
            watcher.from ??= from;
          });
        },
      };
      process.run(async () => {
        try {
          const core = await replica.core;
          const where = { after: resumed?.cursor, fromStart, untilFinal };
          for await (const event of streamOf(core, externalId, where, call)) show(event, isState);
          const endedMs = scheduler.nowMs;
          tell(() => {
            if (untilFinal && !leaving.signal.aborted) watcher.endedMs = endedMs;
            isDone.resolve();
          });
        } catch (error) {
          const refused = error instanceof GatewayError && refusals.has(error.code);
          tell(() => {
            if (refused && resumed) {
              resumed.refused = true;
              // It begins anew as another watcher: the events that it missed are lost.
              recorder.watchers.delete(id);
              id = `${id}'`;
              watcher = begin();
              cursor = undefined;
            }
            isDone.resolve();
          });
        }
      });
      await isDone.promise;
      connected = false;
      period.toMs = scheduler.nowMs;
      stopCut();
      stopDeath();
      if (watcher.endedMs !== undefined) {
        outside.delete(name);
        return;
      }
      outside.add(name);
      process.run(() => leaving.abort());
      // A watcher that cannot connect waits longer each time.
      failures = Number.isFinite(period.fromMs) ? 0 : failures + 1;
      await scheduler.wait(100 * 2 ** Math.min(Math.max(failures - 1, 0), 4));
    }
  }

  /** Waits until nothing is pending, then asks for the final state of all payments. */
  async function finish(latestMs: number): Promise<void> {
    // A gateway that is down may have open calls, which show once it is back.
    const isQuiet = async () =>
      stepsUnderWay === 0 &&
      outside.size === 0 &&
      replicas.every(({ isUp }) => isUp) &&
      service.isQuiet &&
      network.heldUp === 0 &&
      (await stores.isQuiet());
    for (let quiet = 0; quiet < 2 && scheduler.nowMs < latestMs; await scheduler.wait(1_000)) {
      quiet = (await isQuiet()) ? quiet + 1 : 0;
    }
    // Who waited for a store in trouble is answered, or hears after 5 s that it is silent.
    const troubleEndsMs = recorder.troubles.map(({ toMs }) => toMs).filter(Number.isFinite);
    await scheduler.wait(
      Math.max(1_500, ...troubleEndsMs.map((ms) => ms + 6_000 - scheduler.nowMs)),
    );
    for (const step of steps) {
      if (step.do !== "pay" || !isAnswerKept(step)) continue;
      // A store that was late may be busy yet: the repeat has time.
      const { deadlineMs: _, ...patient } = step;
      await payOnce(patient, `${step.id}!`);
    }
    const asked = steps.flatMap((step) => (step.do === "pay" ? [nameOfStep(step)] : []));
    const ends: EndRecord[] = [];
    for (const externalId of new Set(asked)) {
      let found: Partial<EndRecord> | undefined;
      for (let tries = 0; !found && tries < 30; tries++) {
        if (tries > 0) await scheduler.wait(500);
        found = await look(externalId, replicaAt(tries));
      }
      ends.push({
        ...{ externalId, state: "UNAVAILABLE", unknown: false, needsOperator: false },
        ...found,
        expected: service.stateOf(externalId),
      });
    }
    let listed: ListedRecord[] | undefined;
    for (let tries = 0; !listed && tries < 30; tries++) {
      if (tries > 0) await scheduler.wait(500);
      await at(replicaAt(tries), async (core) => {
        listed = await inCall("list", () => listAll(core));
        return {};
      });
    }
    await scheduler.wait(20);
    isOver = true;
    const logs = accounts.map(async (account) =>
      (await stores.log(account)).map(({ cursor, bytes }) => {
        const { event } = readEvent(keyringOf(account).events, bytes);
        return eventOf({ ...event, cursor }, epochMs, account);
      }),
    );
    const log = (await Promise.all(logs)).flat();
    const gateways = replicas.map(({ name, isUp }) => ({ name, back: isUp }));
    ended = { log, ends, gateways, listed: listed ?? [] };
  }

  /**
   * Whether the key was answered and no gateway is killed: that one may not have stored the answer.
   */
  function isAnswerKept({ id, key, waits }: PayStep): boolean {
    const isKill = ({ do: what }: Step) => what === "kill" || what === "powerOff";
    // The answer of a call that waits may be that of another call.
    if (key === undefined || waits || plan.steps.some(isKill)) return false;
    return recorder.calls.some((call) => call.request === id && call.paymentId !== undefined);
  }

  function replicaAt(n: number): Replica {
    return replicas[n % replicas.length] as Replica;
  }

  function latencyMs(): number {
    return scheduler.random.between(0.1, 2);
  }
}

/** When the first step may begin, in milliseconds: the gateways are up by then. */
const startMs = 20;

/** A service of the merchant; it has several, and they may use the same key. */
const callerOf = (account: Account, name: string) => ({
  ...{ name, account },
  scopes: new Set([
    ...(["payments:write", "payments:read", "payouts:write", "payouts:read"] as const),
    ...(["events:read", "callbacks:resend"] as const),
  ]),
});

/** The gateway refuses a cursor. */
const refusals: ReadonlySet<string> = new Set(["OUT_OF_RANGE", "INVALID_ARGUMENT"]);

function nameOfStep(step: { readonly account?: Account; readonly externalId: string }): string {
  return nameIn(step.account ?? accounts[0], step.externalId);
}

function callOf(
  account: Account,
  signal: AbortSignal,
  id: string,
  key?: string,
  deadlineMs?: number,
): Call {
  return {
    ...{ caller: callerOf(account, id.includes("e") ? "till" : "shop"), signal, requestId: id },
    ...(key !== undefined && { idempotencyKey: key }),
    ...(deadlineMs !== undefined && { deadlineMs: deadlineMs + Date.now() - performance.now() }),
  };
}

async function callMoney(
  core: RunningCore,
  { method, externalId, id, held, waits }: PayStep,
  call: Call,
): Promise<Partial<CallRecord>> {
  const waitUntil = waits === undefined ? WaitUntil.UNSPECIFIED : WaitUntil[waits];
  if (method === "RequestPayout") {
    const order = { currency: "UAH", description: id, externalId, originalAmount: "10.00" };
    const recipient = {
      ...{ firstName: "Ivan", lastName: "Franko", externalId: "recipient" },
      cardData: { number: card.number },
    };
    const request = create(RequestPayoutRequestSchema, {
      ...{ order, payer: { entityId: "entity" }, payoutType: "card" },
      recipient: { card: recipient },
      waitUntil,
    });
    const { payout, state } = await core.requestPayout(request, call);
    const told = nameOf(PayoutStateSchema, state);
    return answerOf(payout.status ?? "", payout.transactionId, told, waits);
  }
  const request = { externalId, payload: id, waitUntil };
  const { payment, state } = await payments[method](core, request, held ?? false, call);
  const status = nameOf(PaymentStatusSchema, payment.details?.status).toLowerCase();
  return answerOf(status, payment.details?.paymentId, nameOf(PaymentStateSchema, state), waits);
}

/** What the requests for all methods have in common. */
interface About {
  readonly externalId: string;
  readonly payload: string;
  readonly waitUntil: WaitUntil;
}

const card = { number: "4111111111111111", cvv: "123", expMonth: 12, expYear: 2035 };

const payments = {
  CreatePayment: (core: RunningCore, about: About, held: boolean, call: Call) =>
    core.createPayment(
      create(CreatePaymentRequestSchema, {
        ...{ amount: "10.00", currency: "UAH", mode: PaymentMode.DIRECT, ...about },
        ...(held && { confirm: false }),
        customer: { email: "customer@shop.example" },
        paymentMethod: { method: { case: "cc", value: card } },
      }),
      call,
    ),
  CreateRecurrentPayment: (core: RunningCore, about: About, _: boolean, call: Call) =>
    core.createRecurrentPayment(
      create(CreateRecurrentPaymentRequestSchema, {
        ...{ recurrentId: "r", amount: "10.00", ...about },
      }),
      call,
    ),
  ConfirmPayment: (core: RunningCore, about: About, _: boolean, call: Call) =>
    core.confirmPayment(create(ConfirmPaymentRequestSchema, about), call),
} as const;

function answerOf(
  status: string,
  paymentId = "",
  state = "",
  waits?: PayStep["waits"],
): Partial<CallRecord> {
  // Who waits asks for the payment as a whole, which another attempt may have paid. While another
  // call is open, only the attempt in the answer says anything.
  if (waits && state !== "UNKNOWN") return { outcome: outcomeOfState(state), paymentId, state };
  const outcome = status === "success" ? "paid" : status === "failure" ? "failed" : "pending";
  return { outcome, paymentId, state };
}

function outcomeOfState(state: string): CallOutcome {
  if (state === "FAILED") return "failed";
  // What was cancelled had been paid.
  return state === "UNSPECIFIED" || state === "PENDING" ? "pending" : "paid";
}

function outcomeOf(error: unknown): Partial<CallRecord> {
  if (error instanceof GatewayError) {
    const { code, message, details } = error;
    return { outcome: details.outcomeUnknown ? "unknown" : "refused", error: `${code} ${message}` };
  }
  const told = error instanceof Error ? error.stack : error;
  return { outcome: "refused", error: `INTERNAL ${told}` };
}

async function lookUp(core: RunningCore, name: string, call: Call): Promise<Partial<EndRecord>> {
  const { externalId } = partsOf(name);
  const [found, states] = isPayout(externalId)
    ? [
        await core.getPayout(create(GetPayoutRequestSchema, { externalId }), call),
        PayoutStateSchema,
      ]
    : [
        await core.getPayment(create(GetPaymentRequestSchema, { externalId }), call),
        PaymentStateSchema,
      ];
  const { state, outcomeUnknown: unknown, needsOperator } = found;
  return { state: nameOf(states, state), unknown, needsOperator };
}

/** The list of all and those of some states, of both accounts, read in small pages. */
async function listAll(core: RunningCore): Promise<ListedRecord[]> {
  const listed: ListedRecord[] = [];
  for (const account of accounts) {
    const call = callOf(account, new AbortController().signal, "list");
    for (const of of [undefined, ...statesListed]) {
      for (const { list, states, names } of lists) {
        let pageToken = "";
        do {
          const page = { pageSize: 2, newestFirst: account === accounts[0], pageToken };
          const about = { ...page, states: of ? [states[of]] : [] };
          const { edges, endCursor } = await list(core, about, call);
          for (const { node, externalId } of edges) {
            const { outcomeUnknown: unknown, needsOperator } = node;
            listed.push({
              ...{ ...(of && { of }), externalId: nameIn(account, externalId) },
              ...{ state: nameOf(names, node.state), unknown, needsOperator },
            });
          }
          pageToken = endCursor ?? "";
        } while (pageToken !== "");
      }
    }
  }
  return listed;
}

const lists = [
  {
    ...{ states: PaymentState, names: PaymentStateSchema },
    list: (core: RunningCore, about: object, call: Call) =>
      core.listPayments(create(ListPaymentsRequestSchema, about), call),
  },
  {
    ...{ states: PayoutState, names: PayoutStateSchema },
    list: (core: RunningCore, about: object, call: Call) =>
      core.listPayouts(create(ListPayoutsRequestSchema, about), call),
  },
] as const;

function streamOf(
  core: RunningCore,
  name: string | undefined,
  from: {
    readonly after?: string | undefined;
    readonly fromStart?: boolean;
    readonly untilFinal?: boolean;
  },
  call: Call,
): AsyncIterable<Event> {
  const { after, fromStart = false, untilFinal = false } = from;
  const cursor = after === undefined ? {} : { afterCursor: after };
  if (name === undefined) {
    return core.streamEvents(create(StreamEventsRequestSchema, cursor), call);
  }
  const { externalId } = partsOf(name);
  const begin = after === undefined && fromStart ? { fromStart } : cursor;
  const about = { ...begin, externalId, untilFinal };
  return isPayout(externalId)
    ? core.watchPayout(create(WatchPayoutRequestSchema, about), call)
    : core.watchPayment(create(WatchPaymentRequestSchema, about), call);
}

import { create } from "@bufbuild/protobuf";
import type { Call } from "../../src/core/core.ts";
import type { RunningCore } from "../../src/core/create-core.ts";
import { GatewayError } from "../../src/errors.ts";
import type { Event } from "../../src/gen/payments/v1/event_pb.ts";
import { StreamEventsRequestSchema } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import {
  PaymentOperation,
  PaymentStateSchema,
  PaymentStatusSchema,
} from "../../src/gen/payments/v1/payment_pb.ts";
import {
  ConfirmPaymentRequestSchema,
  CreatePaymentRequestSchema,
  CreateRecurrentPaymentRequestSchema,
  GetPaymentRequestSchema,
  ResendCallbackRequestSchema,
  WatchPaymentRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutStateSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import {
  GetPayoutRequestSchema,
  RequestPayoutRequestSchema,
  WatchPayoutRequestSchema,
} from "../../src/gen/payments/v1/payout_service_pb.ts";
import type { CallRecord, EndRecord, History, WatcherRecord } from "./history.ts";
import { account } from "./merchant.ts";
import { StoreNetwork } from "./network.ts";
import { isPayout, type PayStep, type Plan, type Step, type WatchStep } from "./plan.ts";
import { inCall, Recorder } from "./recorder.ts";
import { Replica, times } from "./replica.ts";
import { epochMs, installVirtualTime, Scheduler } from "./scheduler.ts";
import { Service } from "./service.ts";
import type { StoreOptions, Stores } from "./stores/stores.ts";
import { eventOf, nameOf } from "./words.ts";

installVirtualTime();

/** Opens the stores of one simulation. */
export type OpenStores = (options: StoreOptions) => Stores;

/** How long a simulation may take to settle after its last step, in milliseconds. */
const quietMs = 150_000;

/** Runs a plan, from its first step until nothing is pending. */
export async function simulate(plan: Plan, openStores: OpenStores): Promise<History> {
  const scheduler = new Scheduler(plan.seed);
  const recorder = new Recorder(() => scheduler.nowMs);
  const network = new StoreNetwork(scheduler, recorder);
  const replicas: Replica[] = [];
  const service = new Service({
    ...{ scheduler, recorder, perSecond: plan.perSecond, timeoutMs: times.timeoutMs },
    answersTwice: plan.answersTwice ?? false,
    targets: () => replicas.filter(({ isUp }) => isUp),
  });
  const stores = scheduler.prepare(() =>
    openStores({
      ...{ scheduler, network, recorder, perSecond: plan.perSecond, replication: plan.replication },
      ...{ maxWaitMs: times.maxWaitMs, firstLookMs: times.afterMs, giveUpMs: times.giveUpMs },
    }),
  );
  const world = new World(plan, scheduler, recorder, network, service, stores, replicas);
  try {
    return await world.run();
  } finally {
    await stores.close();
  }
}

class World {
  readonly #plan: Plan;
  readonly #scheduler: Scheduler;
  readonly #recorder: Recorder;
  readonly #network: StoreNetwork;
  readonly #service: Service;
  readonly #stores: Stores;
  readonly #replicas: Replica[];
  /** Steps that have not ended. */
  #underWay = 0;
  /** Watchers that are not connected yet, or not again. */
  readonly #outside = new Set<string>();
  #isOver = false;
  #end: Pick<History, "log" | "ends" | "gateways"> | undefined;

  constructor(
    plan: Plan,
    scheduler: Scheduler,
    recorder: Recorder,
    network: StoreNetwork,
    service: Service,
    stores: Stores,
    replicas: Replica[],
  ) {
    this.#plan = plan;
    this.#scheduler = scheduler;
    this.#recorder = recorder;
    this.#network = network;
    this.#service = service;
    this.#stores = stores;
    this.#replicas = replicas;
  }

  async run(): Promise<History> {
    const scheduler = this.#scheduler;
    const { steps, replicas } = this.#plan;
    scheduler.after(0, () => {
      for (let n = 0; n < replicas; n++) {
        const { connections } = this.#service;
        const aheadMs = this.#plan.aheadMs?.[n];
        const replica = new Replica(`gateway-${n}`, this.#stores, connections, aheadMs);
        this.#replicas.push(replica);
        replica.start();
      }
    });
    let lastMs = 0;
    for (const step of steps) {
      if (step.do === "pay") this.#service.expect(step.id, { ...step, held: step.held ?? false });
      lastMs = Math.max(lastMs, step.atMs + ("forMs" in step ? step.forMs : 0));
      scheduler.after(startMs + step.atMs, () => this.#do(step));
    }
    scheduler.after(startMs + lastMs + 50, () => void this.#finish(lastMs + quietMs));
    const end = () => {
      for (const replica of this.#replicas) replica.close();
    };
    await scheduler.run(() => this.#end !== undefined, lastMs + 2 * quietMs, end);
    if (!this.#end) throw new Error("the simulation did not come to its end");
    return this.#recorder.history(this.#end);
  }

  #do(step: Step): void {
    switch (step.do) {
      case "pay":
        void this.#whileUnderWay(this.#pay(step));
        return;
      case "watch":
        void this.#watch(step);
        return;
      case "look":
        void this.#whileUnderWay(this.#look(step.externalId, this.#replica(step.replica)));
        return;
      case "rush":
        for (let n = 0; n < step.calls; n++) {
          void this.#whileUnderWay(this.#ask(this.#replica(step.replica)));
        }
        return;
      case "pause":
      case "kill":
        this.#stop(step.do, this.#replica(step.replica), step.forMs);
        return;
      case "store": {
        const replica = step.replica === "all" ? undefined : this.#replica(step.replica).name;
        const { trouble: kind, share, forMs } = step;
        this.#recorder.line("store", replica ?? "all", `${kind} for ${forMs} ms (${share})`);
        this.#mayPart(forMs);
        this.#network.begin({ kind, replica, share, untilMs: this.#scheduler.nowMs + forMs });
        return;
      }
      case "replica":
        this.#recorder.line("store", "all", `nothing reaches its replica for ${step.forMs} ms`);
        this.#stores.holdReplica?.(step.forMs);
        return;
      case "failOver":
        this.#recorder.line("store", "all", `its replica takes over, ${step.aheadMs} ms ahead`);
        this.#mayPart(0);
        void this.#whileUnderWay(this.#stores.failOver?.(step.aheadMs) ?? Promise.resolve());
        return;
      case "service":
        this.#recorder.line("service", "all", `${step.trouble} for ${step.forMs} ms`);
        this.#service.trouble = step.trouble;
        this.#scheduler.after(step.forMs, () => {
          this.#service.trouble = undefined;
        });
        return;
      case "limit":
        this.#recorder.line("service", "all", `${step.perSecond} requests a second`);
        this.#service.perSecond = step.perSecond;
    }
  }

  /**
   * Notes that some gateways may go on without the shared budget for now; they return soon after.
   */
  #mayPart(forMs: number): void {
    if (!this.#stores.sharesBudget) return;
    const { nowMs: fromMs } = this.#scheduler;
    const gateways = this.#plan.replicas;
    this.#recorder.apart.push({ fromMs, toMs: fromMs + forMs + 2_500, gateways });
  }

  /** Pauses or kills a process, which runs again after `forMs`. */
  #stop(how: "pause" | "kill", replica: Replica, forMs: number): void {
    const { process } = replica;
    if (process.isDead || process.isPaused) return;
    const fromMs = this.#scheduler.nowMs;
    const absence = { replica: replica.name, fromMs, toMs: fromMs + forMs };
    this.#recorder.absences.push(absence);
    this.#recorder.line(replica.name, replica.name, `${how}d for ${forMs} ms`);
    if (how === "pause") process.pause();
    else replica.kill();
    this.#scheduler.after(forMs, () => {
      this.#recorder.line(replica.name, replica.name, "runs again");
      if (how === "pause") process.resume();
      else replica.start();
    });
  }

  async #whileUnderWay(work: Promise<unknown>): Promise<void> {
    this.#underWay++;
    await work;
    this.#underWay--;
  }

  async #pay(step: PayStep): Promise<void> {
    const echoes = step.echoes.map(async ({ afterMs, replica }, n) => {
      await this.#scheduler.wait(afterMs);
      await this.#payOnce(step, `${step.id}e${n}`, this.#replica(replica));
    });
    for (let tries = 0; tries <= step.retries; tries++) {
      const replica = this.#replica(step.replica + tries);
      const { outcome, error } = await this.#payOnce(step, `${step.id}#${tries}`, replica);
      // Repeats only a call that surely did nothing: answers and unknown outcomes are final.
      if (outcome !== "refused" || error?.startsWith("ALREADY_EXISTS")) break;
      await this.#scheduler.wait(this.#scheduler.random.between(50, 900));
    }
    await Promise.all(echoes);
  }

  /** One call of a caller, until it has its answer or none can come. */
  async #payOnce(
    step: PayStep,
    id: string,
    replica = this.#replica(step.replica + 1),
  ): Promise<CallRecord> {
    const { method, externalId, key, deadlineMs, leavesAfterMs } = step;
    const scheduler = this.#scheduler;
    const beganMs = scheduler.nowMs;
    const record: CallRecord = {
      ...{ id, request: step.id, key, method, externalId, replica: replica.name, beganMs },
      ...(deadlineMs !== undefined && { deadlineMs: beganMs + deadlineMs }),
    };
    this.#recorder.calls.push(record);
    const keyed = key === undefined ? "" : ` with ${key}`;
    const by = deadlineMs === undefined ? "" : ` within ${deadlineMs} ms`;
    this.#recorder.line("callers", replica.name, `${id}: ${method} ${externalId}${keyed}${by}`);
    const leaving = new AbortController();
    const timers: (() => void)[] = [];
    // The gateway reads the deadline by its own wall clock.
    const dueMs = record.deadlineMs && record.deadlineMs + replica.process.aheadMs;
    const call = callOf(leaving.signal, id, key, dueMs);
    const answered = await this.#at(replica, async (core) => {
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
    this.#recorder.line(replica.name, "callers", `${id}: ${told}`);
    return record;
  }

  /** Runs `work` at a gateway, with latency both ways; `gone` if its process dies meanwhile. */
  #at(
    replica: Replica,
    work: (core: RunningCore) => Promise<Partial<CallRecord>>,
  ): Promise<Partial<CallRecord>> {
    return new Promise((resolve) => {
      const { process } = replica;
      if (process.isDead) return resolve({ outcome: "refused", error: "UNAVAILABLE not there" });
      const stopDeath = process.onDeath(() => resolve({ outcome: "gone" }));
      const back = (answer: Partial<CallRecord>) => {
        this.#scheduler.after(this.#latencyMs(), () => {
          stopDeath();
          resolve(answer);
        });
      };
      this.#scheduler.after(
        this.#latencyMs(),
        () => {
          // The gateway does not listen yet.
          if (!replica.isUp) return back({ outcome: "refused", error: "UNAVAILABLE not there" });
          replica.core.then(work).then(back, (error) => back(outcomeOf(error)));
        },
        process,
      );
    });
  }

  async #look(externalId: string, replica: Replica): Promise<Partial<EndRecord> | undefined> {
    const askedMs = this.#scheduler.nowMs;
    let found: Partial<EndRecord> | undefined;
    const record = await this.#at(replica, async (core) => {
      found = await lookUp(core, externalId, callOf(new AbortController().signal, "look"));
      return { state: found.state as string };
    });
    const { state } = record.error?.startsWith("NOT_FOUND") ? { state: "NOT_FOUND" } : record;
    this.#recorder.line(replica.name, "callers", `${externalId} is ${state ?? record.error}`);
    if (state === undefined) return undefined;
    this.#recorder.looks.push({ externalId, askedMs, atMs: this.#scheduler.nowMs, state });
    return found ?? { state };
  }

  /** A cheap call that takes a token. */
  async #ask(replica: Replica): Promise<void> {
    await this.#at(replica, async (core) => {
      const call = callOf(new AbortController().signal, "rush");
      const about = { externalId: "nothing", operation: PaymentOperation.PAYMENT };
      await core.resendCallback(create(ResendCallbackRequestSchema, about), call);
      return {};
    });
  }

  /** Watches, and resumes behind its cursor each time that its connection is cut. */
  async #watch({ id: name, externalId, replica: first, cutsAfterMs }: WatchStep): Promise<void> {
    const scheduler = this.#scheduler;
    let id = name;
    let watcher: WatcherRecord = { id, externalId };
    this.#recorder.watchers.set(id, watcher);
    let cursor: string | undefined;
    let failures = 0;
    this.#outside.add(name);
    for (let connection = 0; !this.#isOver; connection++) {
      const replica = this.#replica(first + connection);
      const leaving = new AbortController();
      const cutMs = cutsAfterMs[connection];
      const isDone = Promise.withResolvers<void>();
      const { process } = replica;
      const stopCut =
        cutMs === undefined ? undefined : scheduler.after(cutMs, () => isDone.resolve());
      const stopDeath = process.onDeath(() => isDone.resolve());
      if (process.isDead) isDone.resolve();
      let connected = true;
      let hasBegun = false;
      let from: string | undefined;
      let place = 0;
      const resumed = cursor === undefined ? undefined : { watcher: id, cursor, refused: false };
      if (resumed) this.#recorder.resumed.push(resumed);
      /** Delivers to the watcher over one connection, so in order. */
      const tell = (work: () => void) => {
        place = Math.max(place, scheduler.nowMs + this.#latencyMs());
        scheduler.after(place - scheduler.nowMs, () => connected && work());
      };
      process.run(async () => {
        try {
          const core = await replica.core;
          const call: Call = {
            ...callOf(leaving.signal, id),
            onOpen: (place) => {
              hasBegun = true;
              this.#outside.delete(name);
              from = place;
              tell(() => {
                if (place === undefined) return;
                cursor ??= place;
                watcher.from ??= place;
              });
            },
          };
          let isFirst = resumed === undefined;
          for await (const event of streamOf(core, externalId, resumed?.cursor, call)) {
            const isState = isFirst && from === undefined && externalId !== undefined;
            isFirst = false;
            const shown = eventOf(event, epochMs);
            tell(() => {
              cursor = shown.cursor;
              watcher.from ??= shown.cursor;
              const atMs = scheduler.nowMs;
              this.#recorder.shown.push({ ...shown, watcher: id, atMs, isFirst: isState });
              this.#recorder.line(replica.name, id, `${shown.externalId} ${shown.state}`);
            });
          }
          tell(() => isDone.resolve());
        } catch (error) {
          const refused = error instanceof GatewayError && error.code === "OUT_OF_RANGE";
          tell(() => {
            if (refused && resumed) {
              resumed.refused = true;
              // It begins anew as another watcher: the events that it missed are lost.
              this.#recorder.watchers.delete(id);
              id = `${id}'`;
              watcher = { id, externalId };
              this.#recorder.watchers.set(id, watcher);
              cursor = undefined;
            }
            isDone.resolve();
          });
        }
      });
      await isDone.promise;
      connected = false;
      this.#outside.add(name);
      stopCut?.();
      stopDeath();
      process.run(() => leaving.abort());
      // A watcher that cannot connect waits longer each time.
      failures = hasBegun ? 0 : failures + 1;
      await scheduler.wait(100 * 2 ** Math.min(Math.max(failures - 1, 0), 4));
    }
  }

  /** Waits until nothing is pending, then asks for the final state of all payments. */
  async #finish(latestMs: number): Promise<void> {
    const scheduler = this.#scheduler;
    // A gateway that is down may have open calls, which show once it is back.
    const isQuiet = async () =>
      this.#underWay === 0 &&
      this.#outside.size === 0 &&
      this.#replicas.every(({ isUp }) => isUp) &&
      this.#service.isQuiet &&
      this.#network.heldUp === 0 &&
      (await this.#stores.isQuiet());
    for (let quiet = 0; quiet < 2 && scheduler.nowMs < latestMs; await scheduler.wait(1_000)) {
      quiet = (await isQuiet()) ? quiet + 1 : 0;
    }
    await scheduler.wait(1_500);
    const { steps } = this.#plan;
    for (const step of steps) {
      if (step.do === "pay" && this.#isAnswerKept(step)) await this.#payOnce(step, `${step.id}!`);
    }
    const asked = steps.flatMap((step) => (step.do === "pay" ? [step.externalId] : []));
    const ends: EndRecord[] = [];
    for (const externalId of new Set(asked)) {
      let found: Partial<EndRecord> | undefined;
      for (let tries = 0; !found && tries < 30; tries++) {
        if (tries > 0) await scheduler.wait(500);
        found = await this.#look(externalId, this.#replica(tries));
      }
      ends.push({
        ...{ externalId, state: "UNAVAILABLE", unknown: false, needsOperator: false },
        ...found,
        expected: this.#service.stateOf(externalId),
      });
    }
    await scheduler.wait(20);
    this.#isOver = true;
    const log = (await this.#stores.log()).map((event) => eventOf(event, epochMs));
    const gateways = this.#replicas.map(({ name, isUp }) => ({ name, back: isUp }));
    this.#end = { log, ends, gateways };
  }

  /**
   * Whether the key was answered and no gateway is killed: that one may not have stored the answer.
   */
  #isAnswerKept({ id, key }: PayStep): boolean {
    if (key === undefined || this.#plan.steps.some((step) => step.do === "kill")) return false;
    return this.#recorder.calls.some((call) => call.request === id && call.paymentId !== undefined);
  }

  #replica(n: number): Replica {
    return this.#replicas[n % this.#replicas.length] as Replica;
  }

  #latencyMs(): number {
    return this.#scheduler.random.between(0.1, 2);
  }
}

/** When the first step may begin, in milliseconds: the gateways are up by then. */
const startMs = 20;

const caller = {
  ...{ name: "shop", account },
  scopes: new Set([
    ...(["payments:write", "payments:read", "payouts:write", "payouts:read"] as const),
    ...(["events:read", "callbacks:resend"] as const),
  ]),
};

function callOf(signal: AbortSignal, id: string, key?: string, deadlineMs?: number): Call {
  return {
    ...{ caller, signal, requestId: id },
    ...(key !== undefined && { idempotencyKey: key }),
    ...(deadlineMs !== undefined && { deadlineMs: deadlineMs + Date.now() - performance.now() }),
  };
}

async function callMoney(
  core: RunningCore,
  { method, externalId, id, held }: PayStep,
  call: Call,
): Promise<Partial<CallRecord>> {
  if (method === "RequestPayout") {
    const order = { currency: "UAH", description: id, externalId, originalAmount: "10.00" };
    const recipient = {
      ...{ firstName: "Ivan", lastName: "Franko", externalId: "recipient" },
      cardData: { number: card.number },
    };
    const request = create(RequestPayoutRequestSchema, {
      ...{ order, payer: { entityId: "entity" }, payoutType: "card" },
      recipient: { card: recipient },
    });
    const payout = await core.requestPayout(request, call);
    const { state } = await core.payoutStateAfter(payout, externalId, call);
    return answerOf(payout.status ?? "", payout.transactionId, nameOf(PayoutStateSchema, state));
  }
  const payment = await payments[method](core, externalId, id, held ?? false, call);
  const { state } = await core.paymentStateAfter(payment, externalId, call);
  const status = nameOf(PaymentStatusSchema, payment.details?.status).toLowerCase();
  return answerOf(status, payment.details?.paymentId, nameOf(PaymentStateSchema, state));
}

const card = { number: "4111111111111111", cvv: "123", expMonth: 12, expYear: 2035 };

const payments = {
  CreatePayment: (
    core: RunningCore,
    externalId: string,
    payload: string,
    held: boolean,
    call: Call,
  ) =>
    core.createPayment(
      create(CreatePaymentRequestSchema, {
        ...{ amount: "10.00", currency: "UAH", mode: PaymentMode.DIRECT, externalId, payload },
        ...(held && { confirm: false }),
        customer: { email: "customer@shop.example" },
        paymentMethod: { method: { case: "cc", value: card } },
      }),
      call,
    ),
  CreateRecurrentPayment: (
    core: RunningCore,
    externalId: string,
    payload: string,
    _: boolean,
    call: Call,
  ) =>
    core.createRecurrentPayment(
      create(CreateRecurrentPaymentRequestSchema, {
        ...{ recurrentId: "r", externalId, amount: "10.00", payload },
      }),
      call,
    ),
  ConfirmPayment: (
    core: RunningCore,
    externalId: string,
    payload: string,
    _: boolean,
    call: Call,
  ) => core.confirmPayment(create(ConfirmPaymentRequestSchema, { externalId, payload }), call),
} as const;

function answerOf(status: string, paymentId = "", state = ""): Partial<CallRecord> {
  const outcome = status === "success" ? "paid" : status === "failure" ? "failed" : "pending";
  return { outcome, paymentId, state };
}

function outcomeOf(error: unknown): Partial<CallRecord> {
  if (!(error instanceof GatewayError)) {
    return {
      outcome: "refused",
      error: `INTERNAL ${error instanceof Error ? error.stack : error}`,
    };
  }
  const { code, message, details } = error;
  return {
    outcome: details.outcomeUnknown ? "unknown" : "refused",
    error: `${code} ${message}`,
  };
}

async function lookUp(
  core: RunningCore,
  externalId: string,
  call: Call,
): Promise<Partial<EndRecord>> {
  if (isPayout(externalId)) {
    const found = await core.getPayout(create(GetPayoutRequestSchema, { externalId }), call);
    const { outcomeUnknown: unknown, needsOperator } = found;
    return { externalId, state: nameOf(PayoutStateSchema, found.state), unknown, needsOperator };
  }
  const found = await core.getPayment(create(GetPaymentRequestSchema, { externalId }), call);
  const { outcomeUnknown: unknown, needsOperator } = found;
  return { externalId, state: nameOf(PaymentStateSchema, found.state), unknown, needsOperator };
}

function streamOf(
  core: RunningCore,
  externalId: string | undefined,
  afterCursor: string | undefined,
  call: Call,
): AsyncIterable<Event> {
  const after = afterCursor === undefined ? {} : { afterCursor };
  if (externalId === undefined) {
    return core.streamEvents(create(StreamEventsRequestSchema, after), call);
  }
  const about = { ...after, externalId };
  return isPayout(externalId)
    ? core.watchPayout(create(WatchPayoutRequestSchema, about), call)
    : core.watchPayment(create(WatchPaymentRequestSchema, about), call);
}

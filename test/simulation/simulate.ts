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
  const world = new World(plan, openStores);
  try {
    return await world.run();
  } finally {
    await world.stores.close();
  }
}

class World {
  readonly stores: Stores;
  readonly #plan: Plan;
  readonly #scheduler: Scheduler;
  readonly #recorder: Recorder;
  readonly #network: StoreNetwork;
  readonly #service: Service;
  readonly #replicas: Replica[] = [];
  /** Steps that have not ended. */
  #underWay = 0;
  /** Watchers that are not connected yet, or not again. */
  readonly #outside = new Set<string>();
  /** All callers and watchers: at the end they leave, or Node.js would keep what they wait for. */
  readonly #leaving = new Set<AbortController>();
  #isOver = false;
  #end: Pick<History, "log" | "ends" | "listed" | "gateways"> | undefined;

  constructor(plan: Plan, openStores: OpenStores) {
    this.#plan = plan;
    const { perSecond, replication, flushesAfterMs, answersTwice = false } = plan;
    const { maxWaitMs, timeoutMs, afterMs: firstLookMs, giveUpMs } = times;
    const scheduler = new Scheduler(plan.seed);
    const recorder = new Recorder(() => scheduler.nowMs);
    this.#network = new StoreNetwork(scheduler, recorder);
    this.#service = new Service({
      ...{ scheduler, recorder, perSecond, timeoutMs, answersTwice },
      targets: () => this.#replicas.filter(({ isUp }) => isUp),
    });
    this.#scheduler = scheduler;
    this.#recorder = recorder;
    this.stores = scheduler.prepare(() =>
      openStores({
        ...{ scheduler, network: this.#network, recorder, perSecond, replication },
        ...{ maxWaitMs, firstLookMs, giveUpMs, flushesAfterMs },
      }),
    );
  }

  async run(): Promise<History> {
    const scheduler = this.#scheduler;
    const { steps, replicas } = this.#plan;
    scheduler.after(0, () => {
      for (let n = 0; n < replicas; n++) {
        const connectionsOf = (account: Account) => this.#service.connectionsOf(account);
        const aheadMs = this.#plan.aheadMs?.[n];
        const replica = new Replica(`gateway-${n}`, this.stores, connectionsOf, aheadMs);
        this.#replicas.push(replica);
        replica.start();
      }
    });
    let lastMs = 0;
    // The service fails in ways of its own, and each write may take as long as the replica lags.
    const lagMs = this.#plan.replication?.lagMs ?? 0;
    if (this.#plan.answersTwice || lagMs >= 200)
      this.#recorder.troubles.push({ fromMs: 0, toMs: Infinity });
    for (const step of steps) {
      if (step.do === "pay") this.#service.expect(step.id, { ...step, held: step.held ?? false });
      lastMs = Math.max(lastMs, step.atMs + ("forMs" in step ? step.forMs : 0));
      scheduler.after(startMs + step.atMs, () => this.#do(step));
    }
    scheduler.after(startMs + lastMs + 50, () => void this.#finish(lastMs + quietMs));
    const end = () => {
      for (const replica of this.#replicas) replica.close();
      for (const leaving of this.#leaving) leaving.abort();
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
        void this.#whileUnderWay(this.#look(nameOfStep(step), this.#replica(step.replica)));
        return;
      case "elsewhere":
        this.#service.happen(step.account ?? accounts[0], step.externalId, step.what);
        return;
      case "burst":
        this.#service.burst(step.account ?? accounts[0], step.callbacks, step.externalId);
        return;
      case "misread":
        void this.#whileUnderWay(this.#misread(this.#replica(step.replica)));
        return;
      case "rush":
        for (let n = 0; n < step.calls; n++) {
          void this.#whileUnderWay(this.#ask(this.#replica(step.replica)));
        }
        return;
      case "pause":
      case "suspend":
      case "kill":
      case "powerOff":
        this.#stop(step.do, this.#replica(step.replica), step.forMs);
        return;
      case "store": {
        const replica = step.replica === "all" ? undefined : this.#replica(step.replica).name;
        const { trouble: kind, share, forMs } = step;
        this.#recorder.line("store", replica ?? "all", `${kind} for ${forMs} ms (${share})`);
        this.#mayPart(forMs);
        this.#trouble(forMs);
        this.#network.begin({ kind, replica, share, untilMs: this.#scheduler.nowMs + forMs });
        return;
      }
      case "replica":
        this.#recorder.line("store", "all", `nothing reaches its replica for ${step.forMs} ms`);
        this.#trouble(step.forMs);
        this.stores.holdReplica?.(step.forMs);
        return;
      case "failOver":
        this.#recorder.line("store", "all", `its replica takes over, ${step.aheadMs} ms ahead`);
        this.#mayPart(0);
        this.#trouble(5_000);
        void this.#whileUnderWay(this.stores.failOver?.(step.aheadMs) ?? Promise.resolve());
        return;
      case "service":
        this.#recorder.line("service", "all", `${step.trouble} for ${step.forMs} ms`);
        this.#trouble(step.forMs);
        this.#service.trouble = step.trouble;
        this.#scheduler.after(step.forMs, () => {
          this.#service.trouble = undefined;
        });
        return;
      case "limit":
        this.#recorder.line("service", "all", `${step.perSecond} requests a second`);
        this.#trouble(12_000);
        this.#service.perSecond = step.perSecond;
    }
  }

  #trouble(forMs: number): void {
    const { nowMs: fromMs } = this.#scheduler;
    this.#recorder.troubles.push({ fromMs, toMs: fromMs + forMs });
  }

  /**
   * Notes that some gateways may go on without the shared budget for now; they return soon after.
   */
  #mayPart(forMs: number): void {
    if (!this.stores.sharesBudget) return;
    const { nowMs: fromMs } = this.#scheduler;
    const gateways = this.#plan.replicas;
    this.#recorder.apart.push({ fromMs, toMs: fromMs + forMs + 2_500, gateways });
  }

  /** Pauses or kills a process, which runs again after `forMs`. */
  #stop(how: "pause" | "suspend" | "kill" | "powerOff", replica: Replica, forMs: number): void {
    const { process } = replica;
    if (process.isDead || process.isPaused) return;
    const fromMs = this.#scheduler.nowMs;
    const absence = { replica: replica.name, fromMs, toMs: fromMs + forMs };
    this.#recorder.absences.push(absence);
    this.#recorder.line(replica.name, replica.name, `${how} for ${forMs} ms`);
    const isBack = how === "pause" || how === "suspend";
    if (isBack) process.pause();
    else replica.kill();
    if (how === "powerOff") this.stores.powerOff?.();
    this.#scheduler.after(forMs, () => {
      this.#recorder.line(replica.name, replica.name, "runs again");
      if (isBack) process.resume(how === "suspend" ? forMs : 0);
      else replica.start();
    });
  }

  async #whileUnderWay(work: Promise<unknown>): Promise<void> {
    this.#underWay++;
    await work;
    this.#underWay--;
  }

  async #pay(step: PayStep): Promise<void> {
    const { leavesAfterMs: _, ...patient } = step;
    const echoes = step.echoes.map(async ({ afterMs, replica, stays }, n) => {
      await this.#scheduler.wait(afterMs);
      await this.#payOnce(stays ? patient : step, `${step.id}e${n}`, this.#replica(replica));
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
    const { method, key, deadlineMs, leavesAfterMs, waits, account = accounts[0] } = step;
    const externalId = nameOfStep(step);
    const scheduler = this.#scheduler;
    const beganMs = scheduler.nowMs;
    const record: CallRecord = {
      ...{ id, request: step.id, account, key, method, externalId, replica: replica.name, beganMs },
      ...(waits && { waits }),
      ...(deadlineMs !== undefined && { deadlineMs: beganMs + deadlineMs }),
    };
    this.#recorder.calls.push(record);
    const keyed = key === undefined ? "" : ` with ${key}`;
    const by = deadlineMs === undefined ? "" : ` within ${deadlineMs} ms`;
    this.#recorder.line("callers", replica.name, `${id}: ${method} ${externalId}${keyed}${by}`);
    const leaving = new AbortController();
    this.#leaving.add(leaving);
    const timers: (() => void)[] = [];
    // The gateway reads the deadline by its own wall clock.
    const dueMs = record.deadlineMs && record.deadlineMs + replica.process.aheadMs;
    const call = callOf(account, leaving.signal, id, key, dueMs);
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
      const { account } = partsOf(externalId);
      const call = callOf(account, new AbortController().signal, "look");
      found = await inCall("look", () => lookUp(core, externalId, call));
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
      const call = callOf(accounts[0], new AbortController().signal, "rush");
      const about = { externalId: "nothing", operation: PaymentOperation.PAYMENT };
      const request = create(ResendCallbackRequestSchema, about);
      await inCall("rush", () => core.resendCallback(request, call));
      return {};
    });
  }

  /** Watches with what is no cursor of this account. */
  async #misread(replica: Replica): Promise<void> {
    const [account, other] = accounts;
    const shown = this.#recorder.shown.findLast((event) => event.account === account);
    if (!shown) return;
    const { cursor } = shown;
    const ways = [
      { cursor: cursor.slice(1), of: account, expected: "INVALID_ARGUMENT" },
      { cursor: `0${cursor}`, of: account, expected: "INVALID_ARGUMENT" },
      { cursor: `${cursor}0`, of: account, expected: "INVALID_ARGUMENT" },
      { cursor, of: other, expected: "OUT_OF_RANGE" },
    ] as const;
    for (const { cursor, of, expected } of ways) {
      const { error, outcome } = await this.#at(replica, async (core) => {
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
        this.#recorder.misread.push({ cursor, expected, told });
    }
  }

  /** Watches, and resumes behind its cursor each time that its connection is cut. */
  async #watch(step: WatchStep): Promise<void> {
    const { id: name, replica: first, cutsAfterMs, pushes = 0, untilFinal = false } = step;
    const { account = accounts[0] } = step;
    const externalId = step.externalId && nameIn(account, step.externalId);
    const fromStart = step.fromStart === true && externalId !== undefined;
    const scheduler = this.#scheduler;
    let id = name;
    const begin = (): WatcherRecord => {
      const watcher = { id, account, externalId, untilFinal, connected: [] };
      const begun = fromStart ? { ...watcher, from: "" } : watcher;
      this.#recorder.watchers.set(id, begun);
      return begun;
    };
    let watcher = begin();
    let cursor: string | undefined;
    let failures = 0;
    this.#outside.add(name);
    for (let connection = 0; !this.#isOver; connection++) {
      const replica = this.#replica(first + connection);
      const { process } = replica;
      const leaving = new AbortController();
      this.#leaving.add(leaving);
      const isDone = Promise.withResolvers<void>();
      const cutMs = cutsAfterMs[connection] ?? Infinity;
      const stopCut = scheduler.after(cutMs, () => isDone.resolve());
      const stopDeath = process.onDeath(() => isDone.resolve());
      if (process.isDead) isDone.resolve();
      let connected = true;
      let place = 0;
      const period = { fromMs: Infinity, toMs: Infinity };
      const resumed = cursor === undefined ? undefined : { watcher: id, cursor, refused: false };
      if (resumed) this.#recorder.resumed.push(resumed);
      /** Delivers to the watcher over one connection, so in order. */
      const tell = (work: () => void) => {
        place = Math.max(place, scheduler.nowMs + this.#latencyMs());
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
          this.#recorder.shown.push({ ...shown, watcher: id, atMs: scheduler.nowMs, isFirst });
          this.#recorder.line(replica.name, id, `${shown.externalId} ${shown.state}`);
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
          this.#outside.delete(name);
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
              this.#recorder.watchers.delete(id);
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
        this.#outside.delete(name);
        return;
      }
      this.#outside.add(name);
      process.run(() => leaving.abort());
      // A watcher that cannot connect waits longer each time.
      failures = Number.isFinite(period.fromMs) ? 0 : failures + 1;
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
      (await this.stores.isQuiet());
    for (let quiet = 0; quiet < 2 && scheduler.nowMs < latestMs; await scheduler.wait(1_000)) {
      quiet = (await isQuiet()) ? quiet + 1 : 0;
    }
    // Who waited for a store in trouble is answered, or hears after 5 s that it is silent.
    const troubleEndsMs = this.#recorder.troubles.map(({ toMs }) => toMs).filter(Number.isFinite);
    await scheduler.wait(
      Math.max(1_500, ...troubleEndsMs.map((ms) => ms + 6_000 - scheduler.nowMs)),
    );
    const { steps } = this.#plan;
    for (const step of steps) {
      if (step.do !== "pay" || !this.#isAnswerKept(step)) continue;
      // A store that was late may be busy yet: the repeat has time.
      const { deadlineMs: _, ...patient } = step;
      await this.#payOnce(patient, `${step.id}!`);
    }
    const asked = steps.flatMap((step) => (step.do === "pay" ? [nameOfStep(step)] : []));
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
    let listed: ListedRecord[] | undefined;
    for (let tries = 0; !listed && tries < 30; tries++) {
      if (tries > 0) await scheduler.wait(500);
      await this.#at(this.#replica(tries), async (core) => {
        listed = await inCall("list", () => listAll(core));
        return {};
      });
    }
    await scheduler.wait(20);
    this.#isOver = true;
    const logs = accounts.map(async (account) =>
      (await this.stores.log(account)).map(({ cursor, bytes }) => {
        const { event } = readEvent(keyringOf(account).events, bytes);
        return eventOf({ ...event, cursor }, epochMs, account);
      }),
    );
    const log = (await Promise.all(logs)).flat();
    const gateways = this.#replicas.map(({ name, isUp }) => ({ name, back: isUp }));
    this.#end = { log, ends, gateways, listed: listed ?? [] };
  }

  /**
   * Whether the key was answered and no gateway is killed: that one may not have stored the answer.
   */
  #isAnswerKept({ id, key, waits }: PayStep): boolean {
    const isKill = ({ do: what }: Step) => what === "kill" || what === "powerOff";
    // The answer of a call that waits may be that of another call.
    if (key === undefined || waits || this.#plan.steps.some(isKill)) return false;
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

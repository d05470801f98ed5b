import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../../src/gen/google/rpc/error_details_pb.ts";
import { OutcomeUnknownSchema } from "../../../src/gen/payments/v1/error_pb.ts";
import type { Event } from "../../../src/gen/payments/v1/event_pb.ts";
import { PaymentStateSchema } from "../../../src/gen/payments/v1/payment_pb.ts";
import { paymentRequest, paymentTold, postCallback } from "../../gateway/callers.ts";
import type { MoneyUpstream } from "../../gateway/money-upstream.ts";
import { password } from "../../gateway/serving.ts";
import type {
  CallbackRecord,
  CallRecord,
  History,
  LoggedEvent,
  ResumeRecord,
  ShownRecord,
} from "../../simulation/history.ts";
import { eventOf, nameOf } from "../../simulation/words.ts";
import { until } from "../../until.ts";
import type { Gateway } from "./gateways.ts";
import { historyOf, paymentIdOf, type Told } from "./history.ts";

/** How long each thing may take that must succeed in the end, in milliseconds. */
const timeoutMs = 60_000;
const callTimeoutMs = 6_000;

/**
 * Random clients of all gateways: they send callbacks and payments with and without keys, and watch,
 * in an order given by the seed, until they are stopped.
 */
export function startLoad(
  gateways: readonly Gateway[],
  upstream: MoneyUpstream,
  random: () => number,
  everyMs = 25,
) {
  const callbacks: CallbackRecord[] = [];
  const calls: CallRecord[] = [];
  const shown: ShownRecord[] = [];
  const resumed: ResumeRecord[] = [];
  const pending = new Set<Promise<unknown>>();
  const over = new AbortController();
  let n = 0;
  const any = () => gateways[Math.floor(random() * gateways.length)] as Gateway;
  const begin = (work: Promise<unknown>) => {
    const ended = work.finally(() => pending.delete(ended));
    pending.add(ended);
  };

  async function pay(externalId: string, gateway: Gateway, key?: string): Promise<CallRecord> {
    const call: CallRecord = {
      ...{ id: `call-${calls.length}`, request: externalId, key, externalId },
      ...{ method: "CreatePayment", replica: gateway.name, beganMs: performance.now() },
    };
    calls.push(call);
    const answer = await answerOf(gateway, externalId, key);
    return Object.assign(call, answer, { endedMs: performance.now() });
  }
  async function payKeyed(
    externalId: string,
    key: string,
    pauseMs: number,
    repeats: readonly Gateway[],
  ): Promise<void> {
    await pay(externalId, any(), key);
    for (const gateway of repeats) {
      await delay(pauseMs);
      await pay(externalId, gateway, key);
    }
  }
  /** Sends a callback until it is acknowledged. */
  async function callBack(externalId: string, order: readonly Gateway[]): Promise<void> {
    const sent: CallbackRecord = { id: callbackOf(externalId), answers: [] };
    callbacks.push(sent);
    const endsMs = performance.now() + timeoutMs;
    for (let at = 0; performance.now() < endsMs && !over.signal.aborted; at++) {
      const status = await post(order[at % order.length] as Gateway, externalId);
      sent.answers.push({ atMs: performance.now(), status });
      if (status === 200) return;
      await delay(150);
    }
  }

  const timer = setInterval(() => {
    const kind = random();
    if (kind < 0.6) {
      const first = Math.floor(random() * gateways.length);
      const order = [...gateways.slice(first), ...gateways.slice(0, first)];
      begin(callBack(`cb-${n++}`, order));
    } else if (kind < 0.85) {
      begin(payKeyed(`none-k${n}`, `key-${n++}`, random() * 3_000, [any(), any()]));
    } else {
      begin(pay(`none-p${n++}`, any()));
    }
  }, everyMs);
  const watchers = gateways.flatMap((gateway, at) => [
    watch(`${gateway.name} alone`, [gateway]),
    watch(`roaming ${at}`, [...gateways.slice(at), ...gateways.slice(0, at)]),
  ]);

  /**
   * Watches all events; where its stream ends, it resumes behind its cursor at the next gateway.
   */
  async function watch(watcher: string, places: readonly Gateway[]): Promise<void> {
    let cursor: string | undefined;
    for (let at = 0; !over.signal.aborted; at++) {
      const { events } = places[at % places.length] as Gateway;
      const moves = places.length > 1 ? AbortSignal.timeout(1_500) : over.signal;
      const signal = AbortSignal.any([over.signal, moves]);
      const back = cursor === undefined ? undefined : { watcher, cursor, refused: false };
      if (back) resumed.push(back);
      try {
        const after = cursor ?? "earliest";
        for await (const { event } of events.streamEvents({ afterCursor: after }, { signal })) {
          if (!event) continue;
          cursor = event.cursor;
          shown.push({ watcher, atMs: performance.now(), ...logged(event) });
        }
      } catch (error) {
        if (ConnectError.from(error).code === Code.OutOfRange && back) {
          back.refused = true;
          watcher = `${watcher}'`;
          cursor = undefined;
        }
        if (!signal.aborted) await delay(50);
      }
    }
  }

  /** Whether a gateway stores callbacks, shows events and accepts payments with a key again. */
  async function isBack(gateway: Gateway): Promise<boolean> {
    const marker = `back-${gateway.name}`;
    await callBack(marker, [gateway]);
    const endsMs = performance.now() + timeoutMs;
    for (let tries = 0; performance.now() < endsMs; tries++, await delay(200)) {
      const externalId = `none-back-${gateway.name}-${tries}`;
      const { outcome } = await pay(externalId, gateway, externalId);
      if (outcome !== "paid") continue;
      const log = await logOf(gateway, callbackOf(marker)).catch(() => []);
      if (log.some(({ callback }) => callback === callbackOf(marker))) return true;
    }
    return false;
  }

  /** What a gateway finally reports about a payment whose outcome was unknown to its caller. */
  async function endOf(externalId: string): Promise<Told["inDoubt"][number]> {
    const endsMs = performance.now() + timeoutMs;
    const unsettled = { externalId, state: "UNKNOWN", unknown: true, needsOperator: false };
    for (; performance.now() < endsMs; await delay(200)) {
      const known = await any()
        .payments.getPayment({ externalId }, { timeoutMs: callTimeoutMs })
        .catch(() => undefined);
      if (known && !known.outcomeUnknown) {
        return { ...unsettled, state: nameOf(PaymentStateSchema, known.state), unknown: false };
      }
      // It was never sent, so the service has no such payment.
      if (!upstream.arrivals.has(externalId)) {
        return { ...unsettled, state: "NOT_FOUND", unknown: false };
      }
    }
    return unsettled;
  }

  /** Ends the load without waiting for outcomes. */
  async function stop(): Promise<void> {
    clearInterval(timer);
    over.abort();
    await Promise.all(watchers);
  }

  return {
    stop,
    /** How many callbacks were acknowledged so far. */
    acknowledged: () =>
      callbacks.filter(({ answers }) => answers.some(({ status }) => status === 200)).length,
    /** Ends the load, waits until everything has settled, and returns the history. */
    async finish(): Promise<History> {
      clearInterval(timer);
      const back = await Promise.all(gateways.map(isBack));
      while (pending.size > 0) await Promise.all(pending);
      const lastOf = new Map(calls.map(({ externalId, outcome }) => [externalId, outcome]));
      const unknown = [...lastOf].filter(([, outcome]) => outcome === "unknown");
      const inDoubt = await Promise.all(unknown.map(([externalId]) => endOf(externalId)));
      // The history ends with this last callback. Events that a gateway could not write before may
      // still follow it.
      await callBack("the-end", gateways);
      const last = callbackOf("the-end");
      // A machine that is busy may cut a reader off, as any client.
      const log = await until(() => logOf(any(), last));
      const isEnd = ({ callback }: LoggedEvent) => callback === last;
      // A watcher that does not see it lacks events: the checks say so.
      await until(() => shown.filter(isEnd).length >= watchers.length).catch(() => {});
      await stop();
      const end = log.at(-1)?.cursor ?? "";
      return historyOf({
        ...{ callbacks, calls, resumed, log, inDoubt, requests: upstream.requests },
        shown: shown.filter(({ cursor }) => cursor <= end),
        gateways: gateways.map(({ name }, at) => ({ name, back: back[at] === true })),
      });
    },
  };
}

async function answerOf(
  { payments }: Gateway,
  externalId: string,
  key: string | undefined,
): Promise<Pick<CallRecord, "outcome" | "paymentId" | "error">> {
  try {
    const { payment } = await payments.createPayment(paymentRequest(externalId), {
      headers: key === undefined ? {} : { "idempotency-key": key },
      timeoutMs: callTimeoutMs,
    });
    return { outcome: "paid", paymentId: payment?.details?.paymentId ?? "" };
  } catch (failure) {
    const told = ConnectError.from(failure);
    const { code } = told;
    const error = `${Code[code].toUpperCase()} ${told.rawMessage}`;
    // The client ended the call itself, or its connection broke: the gateway says nothing.
    if (told.findDetails(ErrorInfoSchema).length === 0) return { outcome: "unknown" };
    const isUnknown = told.findDetails(OutcomeUnknownSchema).length > 0;
    return { outcome: isUnknown ? "unknown" : "refused", error };
  }
}

/** The status of the answer to a callback; 0 if there is none. */
function post(gateway: Gateway, externalId: string): Promise<number> {
  const signal = AbortSignal.timeout(callTimeoutMs);
  return postCallback(gateway, paymentTold(externalId), { password, signal }).then(
    ({ status }) => status,
    () => 0,
  );
}

/** The name of a payment's success callback, as `eventOf` derives it from an event. */
function callbackOf(externalId: string): string {
  return `${paymentIdOf(externalId)} payment success`;
}

/** The whole log, up to the event of a callback. */
async function logOf({ events }: Gateway, last: string): Promise<LoggedEvent[]> {
  const log: LoggedEvent[] = [];
  const signal = AbortSignal.timeout(timeoutMs);
  for await (const { event } of events.streamEvents({ afterCursor: "earliest" }, { signal })) {
    if (event) log.push(logged(event));
    if (log.at(-1)?.callback === last) break;
  }
  return log;
}

/** Converts event times to this process's monotonic clock, as far as the machine's clocks agree. */
function logged(event: Event): LoggedEvent {
  return eventOf(event, performance.timeOrigin);
}

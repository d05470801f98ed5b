import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { OutcomeUnknownSchema } from "../../../src/gen/payments/v1/error_pb.ts";
import { type Event, EventSource } from "../../../src/gen/payments/v1/event_pb.ts";
import { sign } from "../../../src/wire/signature.ts";
import type { MoneyUpstream } from "../../gateway/money-upstream.ts";
import { paymentRequest } from "../../gateway/operations.ts";
import { type Gateway, password } from "./gateways.ts";
import type {
  History,
  LogEvent,
  PaymentAnswer,
  SentCallback,
  SentPayment,
  Shown,
} from "./history.ts";

/** How long everything may take that has to come right in the end, in milliseconds. */
const timeoutMs = 60_000;
const callTimeoutMs = 6_000;

/** Random clients of all gateways, until they are stopped. */
export interface Load {
  /** How many callbacks and payments there were so far, for waits. */
  readonly acknowledged: () => number;
  /** Ends it, waits for what has to come right, and tells all that was said. */
  finish(): Promise<History>;
  /** Ends it, whatever there is still to come. */
  stop(): Promise<void>;
}

/** Sends payments with and without keys and callbacks, and watches, in an order that the seed gives. */
export function startLoad(
  gateways: readonly Gateway[],
  upstream: MoneyUpstream,
  random: () => number,
): Load {
  const callbacks: SentCallback[] = [];
  const payments: SentPayment[] = [];
  const shown: Shown[] = [];
  const refusedCursors: { watcher: string; cursor: string }[] = [];
  const pending = new Set<Promise<void>>();
  const over = new AbortController();
  let n = 0;
  const any = () => gateways[Math.floor(random() * gateways.length)] as Gateway;
  const begin = (work: Promise<void>) => {
    const ended = work.finally(() => pending.delete(ended));
    pending.add(ended);
  };

  async function pay(sent: SentPayment, gateway: Gateway): Promise<void> {
    const headers = sent.key === undefined ? {} : { "idempotency-key": sent.key };
    sent.answers.push(await outcomeOf(gateway, sent, headers));
  }
  async function payKeyed(sent: SentPayment, pauseMs: number, repeats: Gateway[]): Promise<void> {
    await pay(sent, any());
    for (const gateway of repeats) {
      await delay(pauseMs);
      await pay(sent, gateway);
    }
  }
  async function callBack(sent: SentCallback, order: Gateway[]): Promise<void> {
    const until = performance.now() + timeoutMs;
    for (let at = 0; performance.now() < until && !over.signal.aborted; at++) {
      const status = await post(order[at % order.length] as Gateway, bodyOf(sent.id));
      sent.answers.push(status);
      if (status === 200) return;
      await delay(150);
    }
  }

  const timer = setInterval(() => {
    const kind = random();
    if (kind < 0.6) {
      const sent: SentCallback = { id: `cb-${n++}`, answers: [] };
      callbacks.push(sent);
      const first = Math.floor(random() * gateways.length);
      begin(callBack(sent, [...gateways.slice(first), ...gateways.slice(0, first)]));
    } else if (kind < 0.85) {
      const sent: SentPayment = {
        externalId: `none-k${n}`,
        key: `key-${n++}`,
        answers: [],
        errors: [],
      };
      payments.push(sent);
      begin(payKeyed(sent, random() * 3_000, [any(), any()]));
    } else {
      const sent: SentPayment = { externalId: `none-p${n++}`, answers: [], errors: [] };
      payments.push(sent);
      begin(pay(sent, any()));
    }
  }, 25);
  const watchers = gateways.flatMap((gateway, at) => [
    watch(`${gateway.name} alone`, [gateway]),
    watch(`roaming ${at}`, [...gateways.slice(at), ...gateways.slice(0, at)]),
  ]);

  /** Goes on behind its cursor wherever its stream ends, at the next gateway. */
  async function watch(watcher: string, places: readonly Gateway[]): Promise<void> {
    let cursor: string | undefined;
    for (let at = 0; !over.signal.aborted; at++) {
      const { events } = places[at % places.length] as Gateway;
      const moves = places.length > 1 ? AbortSignal.timeout(1_500) : over.signal;
      const signal = AbortSignal.any([over.signal, moves]);
      try {
        const after = cursor ?? "earliest";
        for await (const { event } of events.streamEvents({ afterCursor: after }, { signal })) {
          if (!event) continue;
          cursor = event.cursor;
          shown.push({ watcher, ...eventOf(event) });
        }
      } catch (error) {
        if (ConnectError.from(error).code === Code.OutOfRange && cursor !== undefined) {
          refusedCursors.push({ watcher, cursor });
          watcher = `${watcher}'`;
          cursor = undefined;
        }
        if (!signal.aborted) await delay(50);
      }
    }
  }

  /** Whether a gateway stores, shows and takes a key again. */
  async function isBack(gateway: Gateway): Promise<boolean> {
    const until = performance.now() + timeoutMs;
    for (let tries = 0; performance.now() < until; tries++, await delay(200)) {
      const sent: SentCallback = { id: `back-${gateway.name}-${tries}`, answers: [] };
      callbacks.push(sent);
      sent.answers.push(await post(gateway, bodyOf(sent.id)));
      if (!sent.answers.includes(200)) continue;
      const externalId = `none-back-${gateway.name}-${tries}`;
      const payment: SentPayment = { externalId, key: externalId, answers: [], errors: [] };
      payments.push(payment);
      await pay(payment, gateway);
      if (!payment.answers.includes("paid")) continue;
      const log = await logOf(gateway, sent.id).catch(() => []);
      if (log.some(({ callback }) => callback === sent.id)) return true;
    }
    return false;
  }

  async function settled(externalId: string): Promise<boolean> {
    const until = performance.now() + timeoutMs;
    for (; performance.now() < until; await delay(200)) {
      const known = await any()
        .payments.getPayment({ externalId }, { timeoutMs: callTimeoutMs })
        .catch(() => undefined);
      if (known && !known.outcomeUnknown) return true;
      // Never sent: nobody knows of it.
      if (!upstream.arrivals.has(externalId)) return true;
    }
    return false;
  }

  async function stop(): Promise<void> {
    clearInterval(timer);
    over.abort();
    await Promise.all(watchers);
  }

  return {
    stop,
    acknowledged: () => callbacks.filter(({ answers }) => answers.includes(200)).length,
    async finish() {
      clearInterval(timer);
      const back = await Promise.all(gateways.map(isBack));
      while (pending.size > 0) await Promise.all(pending);
      const inDoubt = payments.filter(({ answers }) => answers.at(-1) === "unknown");
      const unknown = await Promise.all(
        inDoubt.map(async ({ externalId }) => ({
          externalId,
          settled: await settled(externalId),
        })),
      );
      // Nothing comes any more: what follows the last callback of all is the end of the log.
      const last: SentCallback = { id: "the-end", answers: [] };
      callbacks.push(last);
      await callBack(last, [...gateways]);
      const log = await logOf(any(), last.id);
      const until = performance.now() + timeoutMs;
      const isEnd = ({ callback }: LogEvent) => callback === last.id;
      const sawEnd = () => shown.filter(isEnd).length >= watchers.length;
      while (!sawEnd() && performance.now() < until) await delay(50);
      await stop();
      return {
        ...{ callbacks, payments, shown, refusedCursors, log, unknown },
        arrivals: upstream.arrivals,
        gateways: gateways.map(({ name }, at) => ({ name, back: back[at] === true })),
      };
    },
  };
}

async function outcomeOf(
  { payments }: Gateway,
  { externalId, errors }: SentPayment,
  headers: Record<string, string>,
): Promise<PaymentAnswer> {
  try {
    await payments.createPayment(paymentRequest(externalId) as never, {
      headers,
      timeoutMs: callTimeoutMs,
    });
    return "paid";
  } catch (error) {
    const failure = ConnectError.from(error);
    errors?.push(failure.message);
    if (failure.findDetails(OutcomeUnknownSchema).length > 0) return "unknown";
    // An answer that the gateway did not give says nothing.
    const own = failure.code === Code.DeadlineExceeded || failure.code === Code.Canceled;
    return own ? "unknown" : "refused";
  }
}

async function post({ publicUrl }: Gateway, body: string): Promise<number> {
  const headers = { "x-service-signature": sign(Buffer.from(body), password) };
  try {
    const signal = AbortSignal.timeout(callTimeoutMs);
    const url = `${publicUrl}/callbacks/default/payments`;
    const answer = await fetch(url, { method: "POST", headers, body, signal });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return 0;
  }
}

function bodyOf(id: string): string {
  return JSON.stringify({
    external_id: id,
    operation: "payment",
    details: { payment_id: `p-${id}`, status: "success", status_code: "ok" },
  });
}

/** The whole log, up to the event of a callback. */
async function logOf({ events }: Gateway, last: string): Promise<LogEvent[]> {
  const log: LogEvent[] = [];
  const signal = AbortSignal.timeout(timeoutMs);
  for await (const { event } of events.streamEvents({ afterCursor: "earliest" }, { signal })) {
    if (event) log.push(eventOf(event));
    if (log.at(-1)?.callback === last) break;
  }
  return log;
}

function eventOf({ cursor, source, externalId }: Event): LogEvent {
  return { cursor, callback: source === EventSource.CALLBACK ? externalId : undefined };
}

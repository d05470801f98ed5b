import http2 from "node:http2";
import { setTimeout as delay } from "node:timers/promises";

/** Longest time that a caller waits for its answer. */
export const deadlineMs = 1_000;

/** The delay in `google.rpc.RetryInfo` of a refusal. */
const retryMs = 1_000;

export interface Outcome {
  /** HTTP status; 0 for none. */
  readonly status: number;
  readonly ms: number;
}

/** Callers of CreatePayment over a few HTTP/2 connections. */
export function createCallers(rpcUrl: string) {
  const sessions = Array.from({ length: 16 }, () => http2.connect(rpcUrl));
  let calls = 0;

  function call(): Promise<Outcome> {
    calls += 1;
    const startedMs = performance.now();
    const stream = (sessions[calls % sessions.length] as http2.ClientHttp2Session).request({
      ":method": "POST",
      ":path": "/payments.v1.PaymentService/CreatePayment",
      "content-type": "application/json",
      "connect-timeout-ms": deadlineMs,
    });
    stream.on("error", () => {});
    stream.resume().end(
      JSON.stringify({
        amount: "10.10",
        currency: "UAH",
        mode: "PAYMENT_MODE_DIRECT",
        external_id: `${process.pid}-${calls}`,
        customer: { email: "jo@example.com" },
        payment_method: {
          cc: { number: "4111111111111111", cvv: "123", exp_month: 12, exp_year: 2031 },
        },
      }),
    );
    return new Promise((resolve) => {
      let status = 0;
      stream.on("response", (headers) => {
        status = Number(headers[":status"]);
      });
      stream.on("close", () => resolve({ status, ms: performance.now() - startedMs }));
    });
  }

  return {
    /** Callers that each call again after an answer, and after a refusal with its retry delay. */
    async closedLoop(callers: number, forMs: number): Promise<Outcome[]> {
      const until = performance.now() + forMs;
      const outcomes: Outcome[] = [];
      const loop = async () => {
        while (performance.now() < until) {
          const outcome = await call();
          outcomes.push(outcome);
          if (outcome.status === 429) await delay(retryMs);
        }
      };
      await Promise.all(Array.from({ length: callers }, loop));
      return outcomes;
    },
    /** Makes `perSecond` calls a second, whether or not earlier ones were answered. */
    async openLoop(perSecond: number, forMs: number): Promise<Outcome[]> {
      const beganMs = performance.now();
      const all: Promise<Outcome>[] = [];
      for (let ms = 0; ms < forMs; ms = performance.now() - beganMs) {
        while (all.length < (ms / 1_000) * perSecond) all.push(call());
        await delay(2);
      }
      return Promise.all(all);
    },
    close() {
      for (const session of sessions) session.destroy();
    },
  };
}

/** The time within which this share of the outcomes lies; 0 if there are none. */
export function quantile(outcomes: readonly Outcome[], share: number): number {
  const times = outcomes.map(({ ms }) => ms).toSorted((a, b) => a - b);
  return times[Math.floor(times.length * share)] ?? 0;
}

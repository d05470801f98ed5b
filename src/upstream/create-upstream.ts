import { setTimeout as delay } from "node:timers/promises";
import { noReport, type Observations } from "../report.ts";
import { noTracing } from "../telemetry/tracing/tracing.ts";
import { type Attempted, createAttempts } from "./attempt.ts";
import { createBreaker } from "./breaker.ts";
import { calls } from "./calls.ts";
import { createConnections } from "./connections.ts";
import { unavailable, unavailableRetryMs } from "./outcome.ts";
import type { RestCall } from "./rest-call.ts";
import type { SendOptions, Upstream, UpstreamOptions } from "./upstream.ts";

/** Creates the client of the payments service for one account. It does not close the bucket. */
export function createUpstream(options: UpstreamOptions): Upstream {
  const { account, timeoutMs, report = noReport } = options;
  const { now = () => performance.now(), random = Math.random } = options;
  const { origin } = new URL(account.url);
  const { connections = createConnections({ origin, timeoutMs, now }) } = options;
  const breakerOf = (calls: "money" | "other", maxPauseMs: number) => {
    const about = { account: account.name, calls };
    const onState = (state: Observations["breaker"]["state"]) =>
      report("breaker", { ...about, state });
    return createBreaker({ now, random, maxPauseMs, onState });
  };
  // Failing reads never block a payment. A probe of the money breaker notices within seconds that
  // the service is back, so that payments wait the least.
  const breakers = { money: breakerOf("money", 2_000), other: breakerOf("other", 10_000) };
  const { tracing = noTracing } = options;
  const attempts = createAttempts({ ...options, connections, breakers, report, tracing });
  const closing = new AbortController();
  let closed: Promise<void> | undefined;

  /**
   * A call that changes something is written to a socket at most once. One that changes nothing is
   * sent again at most twice, after a pause with jitter.
   */
  async function send(call: RestCall<unknown>, sending: SendOptions): Promise<unknown> {
    if (closing.signal.aborted) throw unavailable("the gateway is shutting down", undefined);
    const { method, path } = call.endpoint;
    const { signal } = sending;
    let failed: FailedAttempt | undefined;
    let leftMs = timeoutMs;
    for (let retries = 0; ; retries++) {
      const attempted = await attempts.make(call, { ...sending, timeoutMs: leftMs });
      if (attempted.kind === "result") return attempted.result;
      if (method !== "GET") throw attempted.error;
      // The gateway stopped this retry: the earlier failure says more.
      if (failed && attempted.verdict === "nothing" && !signal.aborted) throw failed.error;
      failed = attempted;
      const pauseMs = random() * firstPauseMs * 2 ** retries;
      leftMs -= attempted.lastedMs + pauseMs;
      const end = retryEnd(attempted, retries, leftMs);
      const endpoint = `${method} ${path}`;
      report("readFailed", { account: account.name, endpoint, next: end ?? "retry" });
      if (end !== undefined) throw attempted.error;
      const ended = AbortSignal.any([signal, closing.signal]);
      await delay(pauseMs, undefined, { signal: ended }).catch(() => {});
      if (closing.signal.aborted) throw attempted.error;
    }
  }

  /** Why a failed read is not sent again; undefined if it is. */
  function retryEnd({ verdict, error }: FailedAttempt, retries: number, leftMs: number) {
    // Most of the time of a call that timed out is used up.
    if (verdict !== "failed") return verdict === "nothing" ? "ended" : verdict;
    // The service's own word on this call, which opens no breaker; or a pause that it asks for.
    const { upstream, retryAfterMs = 0 } = error.details;
    if (upstream?.code || retryAfterMs > unavailableRetryMs) return "answered";
    if (retries === maxRetries) return "tries";
    if (breakers.other.refusal() !== undefined) return "breaker";
    return leftMs <= 0 ? "timeout" : undefined;
  }

  /** undici's `close` alone would also wait for connections that no request needs any more. */
  async function close(): Promise<void> {
    closing.abort();
    connections.close();
    await attempts.ended();
    await connections.destroy();
  }

  const sends = Object.entries(calls).map(([name, callOf]) => [
    name,
    // Async: what its request cannot be encoded with is a rejection too.
    async (request: never, sending: SendOptions) =>
      send(callOf(request) as RestCall<unknown>, sending),
  ]);
  return { ...Object.fromEntries(sends), close: () => (closed ??= close()) };
}

type FailedAttempt = Extract<Attempted<never>, { kind: "failure" }>;

const maxRetries = 2;
/** The longest first pause, in milliseconds; the second one is twice as long. */
const firstPauseMs = 100;

import { setTimeout as delay } from "node:timers/promises";
import { SharedCalls } from "../collections/shared-calls.ts";
import { errorOfAbort, type GatewayError, unlessAborted } from "../errors.ts";
import { noReport, type Observations } from "../report.ts";
import { noTracing } from "../telemetry/tracing/tracing.ts";
import { type Attempted, createAttempts } from "./attempt.ts";
import { createBreaker } from "./breaker.ts";
import { calls } from "./calls.ts";
import { createConnections } from "./connections.ts";
import { customerHeaders } from "./headers.ts";
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
  const budget = createRetryBudget();
  const reads = new SharedCalls<{ readonly answer: Promise<unknown> }>();
  const closing = new AbortController();
  let closed: Promise<void> | undefined;

  /** Sends a call that changes something: it is written to a socket at most once. */
  async function send<Result>(call: RestCall<Result>, sending: SendOptions): Promise<Result> {
    if (closing.signal.aborted) throw closedError();
    const attempted = await attempts.make(call, { ...sending, timeoutMs });
    if (attempted.kind === "result") return attempted.result;
    throw attempted.error;
  }

  /** Sends a call that changes nothing. It is sent again at most twice, after a pause with jitter. */
  async function read<Result>(
    call: RestCall<Result>,
    caller: SendOptions["caller"],
    signal: AbortSignal,
  ): Promise<Result> {
    if (closing.signal.aborted) throw closedError();
    const endpoint = `${call.endpoint.method} ${call.endpoint.path}`;
    budget.onRead();
    let failed: FailedAttempt | undefined;
    let endsAt: number | undefined;
    let leftMs = timeoutMs;
    for (let retries = 0; ; retries++) {
      const attempted = await attempts.make(call, { signal, timeoutMs: leftMs, caller });
      if (attempted.kind === "result") return attempted.result;
      // The gateway or the caller stopped this retry: the earlier failure says more.
      if (failed && attempted.verdict === "nothing") throw failed.error;
      failed = attempted;
      endsAt ??= performance.now() + timeoutMs - attempted.lastedMs;
      const pauseMs = random() * firstPauseMs * 2 ** retries;
      const end = retryEnd(attempted, retries, endsAt - performance.now() - pauseMs);
      report("readFailed", { account: account.name, endpoint, next: end ?? "retry" });
      if (end !== undefined) throw attempted.error;
      const ended = AbortSignal.any([signal, closing.signal]);
      await delay(pauseMs, undefined, { signal: ended }).catch(() => {});
      if (closing.signal.aborted) throw attempted.error;
      leftMs = endsAt - performance.now();
    }
  }

  /** Why a failed read is not sent again; undefined if it is. */
  function retryEnd({ verdict, error }: FailedAttempt, retries: number, leftMs: number) {
    // Most of the time of a call that timed out is used up.
    if (verdict !== "failed") return verdict === "nothing" ? "ended" : verdict;
    // Before a pause that the service asks for is over, it would answer the same.
    if ((error.details.retryAfterMs ?? 0) > unavailableRetryMs) return "answered";
    if (retries === maxRetries) return "tries";
    if (breakers.other.refusal() !== undefined) return "breaker";
    if (leftMs <= 0) return "timeout";
    return budget.take() ? undefined : "budget";
  }

  /**
   * Identical reads of one caller in flight share their requests and one result, which callers must
   * not change. `onSent` is not called.
   */
  async function share<Result>(
    call: RestCall<Result>,
    { caller, signal }: SendOptions,
  ): Promise<Result> {
    if (signal.aborted) throw errorOfAbort(signal);
    // The key names the caller, so that no caller waits for another caller's turn.
    const parts = [caller?.name ?? "", call.target, ...customerHeaders(call.customer)];
    const { answer } = reads.join(JSON.stringify(parts), signal, (signal) => ({
      answer: read(call, caller, signal),
    }));
    // Each caller stops waiting by its own signal.
    return (await unlessAborted(answer, signal, () => errorOfAbort(signal))) as Result;
  }

  /** undici's `close` alone would also wait for connections that no request needs any more. */
  async function close(): Promise<void> {
    closing.abort();
    connections.close();
    await attempts.ended();
    await connections.destroy();
  }

  const sends = Object.entries(calls).map(([name, callOf]) => {
    async function sendCall(request: never, sending: SendOptions): Promise<unknown> {
      const call = callOf(request) as RestCall<unknown>;
      return call.endpoint.method === "GET" ? share(call, sending) : send(call, sending);
    }
    return [name, sendCall];
  });
  return { ...Object.fromEntries(sends), close: () => (closed ??= close()) };
}

function closedError(): GatewayError {
  return unavailable("the gateway is shutting down", undefined);
}

type FailedAttempt = Extract<Attempted<never>, { kind: "failure" }>;

const maxRetries = 2;
/** The longest first pause, in milliseconds; the second one is twice as long. */
const firstPauseMs = 100;

/** Retries never amplify an outage: at most a tenth of an account's reads, and ten at once. */
function createRetryBudget() {
  const costOfRetry = 10;
  let left = 10 * costOfRetry;
  return {
    onRead() {
      left = Math.min(left + 1, 10 * costOfRetry);
    },
    /** Takes one retry from the budget. False if nothing is left. */
    take(): boolean {
      if (left < costOfRetry) return false;
      left -= costOfRetry;
      return true;
    },
  };
}

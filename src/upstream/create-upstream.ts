import { setTimeout as delay } from "node:timers/promises";
import { SharedCalls } from "../collections/shared-calls.ts";
import { errorOfAbort, type GatewayError, unlessAborted } from "../errors.ts";
import { intakeLimits } from "../net/intake-limits.ts";
import { noReport } from "../report.ts";
import { noTracing } from "../telemetry/tracing/tracing.ts";
import { type Attempted, createAttempts } from "./attempt.ts";
import { createBreakers } from "./breakers.ts";
import { calls } from "./calls.ts";
import { createConnections } from "./connections.ts";
import { customerHeaders } from "./headers.ts";
import { unavailable, unavailableRetryMs } from "./outcome.ts";
import type { RestCall } from "./rest-call.ts";
import { createRetryBudget, decideRetry } from "./retry.ts";
import type { SendOptions, Upstream, UpstreamOptions } from "./upstream.ts";

/** Creates the client of the payments service for one account. It does not close the bucket. */
export function createUpstream(options: UpstreamOptions): Upstream {
  const { account, timeoutMs, report = noReport } = options;
  const { now = () => performance.now(), random = Math.random } = options;
  const { maxResponseBytes = intakeLimits.answerBytes, tracing = noTracing } = options;
  const { origin } = new URL(account.url);
  const { connections = createConnections({ origin, timeoutMs, tls: options.tls, now }) } = options;
  const breakers = createBreakers(account.name, report, { now, random });
  const sending = { connections, breakers, report, tracing, maxResponseBytes };
  const attempts = createAttempts({ ...options, ...sending });
  const budget = createRetryBudget(now);
  const reads = new SharedCalls<SharedRead>();
  const closing = new AbortController();
  let closed: Promise<void> | undefined;

  /** Sends a call that changes something: it is written to a socket at most once. */
  async function send<Result>(call: RestCall<Result>, sending: SendOptions): Promise<Result> {
    if (closing.signal.aborted) throw closedError();
    const attempted = await attempts.make(call, { ...sending, timeoutMs });
    if (attempted.kind === "result") return attempted.result;
    throw attempted.error;
  }

  async function read<Result>(
    call: RestCall<Result>,
    caller: SendOptions["caller"],
    shared: SharedWaitBudget,
  ): Promise<Result> {
    if (closing.signal.aborted) throw closedError();
    const { signal } = shared;
    const endpoint = `${call.endpoint.method} ${call.endpoint.path}`;
    budget.onRead();
    let failed: Extract<Attempted<Result>, { kind: "failure" }> | undefined;
    let endsAt: number | undefined;
    let leftMs = timeoutMs;
    for (let retries = 0; ; retries++) {
      const attempted = await attempts.make(call, { signal, timeoutMs: leftMs, caller });
      if (attempted.kind === "result") return attempted.result;
      // The gateway or the caller stopped this retry: the earlier failure says more.
      if (failed && attempted.verdict === "nothing") throw failed.error;
      failed = attempted;
      endsAt ??= performance.now() + timeoutMs - attempted.lastedMs;
      const { verdict, error } = attempted;
      // Before a pause that the service asks for is over, it would answer the same.
      const asksForPause =
        verdict === "failed" && (error.details.retryAfterMs ?? 0) > unavailableRetryMs;
      const decision = decideRetry({
        verdict: asksForPause ? "answered" : verdict,
        retries,
        leftMs: Math.min(endsAt - performance.now(), shared.deadlineMs - Date.now()),
        breakerOpen: breakers.other.refusal() !== undefined,
        withinBudget: budget.allows(),
        jitter: random(),
      });
      const next = typeof decision === "number" ? "retry" : decision;
      report("readFailed", { account: account.name, endpoint, next });
      if (typeof decision !== "number") throw attempted.error;
      budget.onRetry();
      const ended = AbortSignal.any([signal, closing.signal]);
      await delay(decision, undefined, { signal: ended }).catch(() => {});
      if (closing.signal.aborted) throw attempted.error;
      leftMs = endsAt - performance.now();
    }
  }

  /**
   * Sends a call that changes nothing; it may be sent again when it fails. Identical reads of one
   * caller in flight share their requests and one result, which callers must not change. `onSent` is
   * not called.
   */
  async function share<Result>(
    call: RestCall<Result>,
    { caller, signal, deadlineMs = Infinity }: SendOptions,
  ): Promise<Result> {
    if (signal.aborted) throw errorOfAbort(signal);
    // The key names the caller, so that no caller waits for another caller's turn.
    const parts = [caller?.name ?? "", call.target, ...customerHeaders(call.customer)];
    const { answer, waitBudget } = reads.join(JSON.stringify(parts), signal, (signal) => {
      const waitBudget = { signal, deadlineMs };
      return { answer: read(call, caller, waitBudget), waitBudget };
    });
    waitBudget.deadlineMs = Math.max(waitBudget.deadlineMs, deadlineMs);
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

/** How long at least one caller of a shared call waits. */
interface SharedWaitBudget {
  /** Aborts when no caller waits any more. */
  readonly signal: AbortSignal;
  /** The latest deadline of all callers so far, in milliseconds since the epoch, or Infinity. */
  deadlineMs: number;
}

interface SharedRead {
  readonly answer: Promise<unknown>;
  readonly waitBudget: SharedWaitBudget;
}

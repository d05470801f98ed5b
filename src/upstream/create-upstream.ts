import { setTimeout as delay } from "node:timers/promises";
import { UnderWay } from "../collections/under-way.ts";
import { type ErrorCode, GatewayError } from "../errors.ts";
import type { Droppable } from "../net/memory-budget.ts";
import type { Permit } from "../ratelimit/bucket.ts";
import { noReport, type Observations } from "../report.ts";
import type { Attributes } from "../telemetry/tracing/attributes.ts";
import { noTracing } from "../telemetry/tracing/tracing.ts";
import { createBreaker, type Verdict } from "./breaker.ts";
import { calls } from "./calls.ts";
import { createConnections } from "./connections.ts";
import { hideSecretsOf } from "./echoed-secrets.ts";
import { exchange, type HttpHead } from "./exchange.ts";
import { customerHeaders, merchantHeaders, rateLimitHeaders } from "./headers.ts";
import {
  errorOfFailure,
  faultOf,
  faultOfAnswer,
  unavailable,
  unavailableRetryMs,
  verdictOf,
} from "./outcome.ts";
import { parseResponse } from "./parse-response.ts";
import type { RestCall } from "./rest-call.ts";
import type { SendOptions, Upstream, UpstreamOptions } from "./upstream.ts";

/** Creates the client of the payments service for one account. It does not close the bucket. */
export function createUpstream(options: UpstreamOptions): Upstream {
  const { account, bucket, timeoutMs, report = noReport, tracing = noTracing } = options;
  const { name } = account;
  const { now = () => performance.now(), random = Math.random } = options;
  const { origin } = new URL(account.url);
  const { connections = createConnections({ origin, timeoutMs, now }) } = options;
  const breakerOf = (calls: "money" | "other", maxPauseMs: number) => {
    const about = { account: name, calls };
    const onState = (state: Observations["breaker"]["state"]) =>
      report("breaker", { ...about, state });
    return createBreaker({ now, random, maxPauseMs, onState });
  };
  // Failing reads never block a payment. A probe of the money breaker notices within seconds that
  // the service is back, so that payments wait the least.
  const breakers = { money: breakerOf("money", 2_000), other: breakerOf("other", 10_000) };
  const { budget, payoutEnds } = options;
  const count = budget && ((answer: Droppable) => budget.open(connections, answer));
  const { pathname, hostname, port, protocol } = new URL(account.url);
  const basePath = pathname.replace(/(?<!\/)\/+$/, "");
  const server = {
    "server.address": hostname,
    "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
  };
  const { withBody, bodiless, secrets } = merchantHeaders(account.login, account.password.reveal());
  const underWay = new UnderWay<Promise<unknown>>();
  let credentialsAccepted: boolean | undefined;
  const closing = new AbortController();
  let closed: Promise<void> | undefined;

  /**
   * A call that changes something is written to a socket at most once. One that changes nothing is
   * sent again at most twice, after a pause with jitter.
   */
  async function send(call: RestCall<unknown>, sending: SendOptions): Promise<unknown> {
    if (closing.signal.aborted) throw unavailable("the gateway is shutting down", undefined);
    const { name: endpoint, method } = call.endpoint;
    const { signal } = sending;
    let failed: FailedAttempt | undefined;
    let leftMs = timeoutMs;
    for (let retries = 0; ; retries++) {
      const attempted = await attempt(call, { ...sending, timeoutMs: leftMs });
      if ("result" in attempted) return attempted.result;
      if (method !== "GET") throw attempted.error;
      // The gateway stopped this retry: the earlier failure says more.
      if (failed && attempted.verdict === "nothing" && !signal.aborted) throw failed.error;
      failed = attempted;
      const pauseMs = random() * firstPauseMs * 2 ** retries;
      leftMs -= attempted.lastedMs + pauseMs;
      const end = retryEnd(attempted, retries, leftMs);
      report("readFailed", { account: name, endpoint, next: end ?? "retry" });
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

  /**
   * Makes one attempt: asks the breaker, takes a token, writes the request to a socket at most once
   * and reads the answer. Takes at most `timeoutMs` once it has its token.
   */
  async function attempt(
    call: RestCall<unknown>,
    { signal, deadlineMs, caller, onSent, timeoutMs }: SendOptions & { readonly timeoutMs: number },
  ): Promise<{ readonly result: unknown } | FailedAttempt> {
    const { name: endpoint, method, path, moneyKind: kind } = call.endpoint;
    const money = kind && { kind, externalId: call.externalId ?? "" };
    const breaker = money ? breakers.money : breakers.other;
    const customer = customerHeaders(call.customer);
    const headers = call.body === undefined ? bodiless : withBody;

    // Checked before the wait for a token too: an open breaker makes that wait useless.
    const refusalMs = breaker.refusal();
    if (refusalMs !== undefined) return ended(refusedByBreaker(refusalMs));
    const askedAt = performance.now();
    let permit: Permit;
    try {
      const priority = money ? "money" : "read";
      permit = await bucket.take({ priority, caller, signal, deadlineMs });
    } catch (error) {
      if (error instanceof GatewayError) return ended(error);
      throw error;
    }
    const judge = breaker.enter();
    if (!judge) {
      permit.release();
      return ended(refusedByBreaker(breaker.refusal()));
    }

    const startedAt = performance.now();
    const about = (): Attributes => ({
      ...server,
      "http.request.method": method,
      "url.template": path,
    });
    const span = tracing.start(endpoint, {
      kind: "client",
      attributes: () => ({
        ...about(),
        "payments_gateway.account": name,
        "payments_gateway.rate_limit.wait": (startedAt - askedAt) / 1_000,
      }),
    });
    /** `outcome`: an HTTP status or an error code. `failure`, `fault`: why no answer was understood. */
    const reportCall = (outcome: number | ErrorCode, failure?: string, fault?: string): number => {
      const durationMs = performance.now() - startedAt;
      const status = typeof outcome === "number" ? outcome : undefined;
      const errorType = status !== undefined && status >= 400 ? `${status}` : failure;
      const end = { "http.response.status_code": status };
      const http = () => ({ ...about(), ...end, "error.type": errorType });
      const ended = { account: name, endpoint, outcome: `${outcome}`, fault, durationMs, http };
      report("upstreamCall", { ...ended, traceparent: span.traceparent });
      span.set(end);
      if (errorType !== undefined) span.fail(errorType);
      span.end();
      return durationMs;
    };
    report("upstreamInFlight", { account: name, change: 1 });

    const request = {
      method,
      path: basePath + call.target,
      headers: [...headers, ...customer, ...span.headers()],
      body: call.body ?? null,
    };
    const limits = {
      ...{ signal, timeoutMs, onSent },
      // Without its answer, the outcome of a call that moves money would be unknown: it is kept.
      count: money ? undefined : count,
      finishOnceSent: money !== undefined,
    };
    const exchanged = exchange(connections, request, limits);
    const member = underWay.add(exchanged);
    const answer = await exchanged;
    member.leave();
    report("upstreamInFlight", { account: name, change: -1 });
    if ("failure" in answer) {
      const verdict = verdictOf(answer, performance.now() - startedAt);
      // While calls that move money can be sent, they are sent: one that succeeds is worth more than
      // one that is spared. Refused is only what would fail after its wait for a connection.
      judge(money && answer.sent && verdict !== "nothing" ? "answered" : verdict);
      if (answer.sent) settle(permit, answer.head, answer.head?.status === 429);
      else permit.release();
      const error = errorOfFailure(answer, money);
      const fault = verdict === "nothing" ? undefined : faultOf(answer);
      return ended(error, verdict, reportCall(error.code, answer.failure, fault));
    }

    // Worked out once, and only for an answer that has such texts.
    let hide: ReturnType<typeof hideSecretsOf> | undefined;
    const response = parseResponse(answer, call, {
      money,
      payoutEnds,
      asCustomer: customer.length > 0,
      hideSecrets(text) {
        hide ??= hideSecretsOf(call.schema, call.request, secrets);
        return hide(text);
      },
      onFault: (fault) => report("fieldFault", { account: name, endpoint, ...fault }),
    });
    const mixedUp = response.kind === "error" && response.mixedUp === true;
    if (mixedUp) {
      connections.onMixUp();
      report("mixUp", { account: name, endpoint });
    }
    const failed = response.kind === "error" && response.serviceFailed;
    const verdict = failed ? "failed" : "answered";
    // An error code is the service's own word on one call, whatever the status: the service is up.
    const isDown = failed && !response.error.details.upstream?.code;
    judge(isDown && !money ? "failed" : "answered");
    settle(permit, mixedUp ? undefined : answer, response.kind === "error" && response.rateLimited);
    const lastedMs = failed
      ? // Of a mix-up `mixUp` tells already.
        reportCall(answer.status, "answer", mixedUp ? undefined : faultOfAnswer(answer.status))
      : reportCall(answer.status);
    if (response.kind === "result") {
      reportCredentials(true);
      return response;
    }
    if (response.credentialsRefused) reportCredentials(false);
    return ended(response.error, verdict, lastedMs);
  }

  function reportCredentials(accepted: boolean): void {
    if (accepted === credentialsAccepted) return;
    credentialsAccepted = accepted;
    report("credentials", { account: name, accepted });
  }

  /** undici's `close` alone would also wait for connections that no request needs any more. */
  async function close(): Promise<void> {
    closing.abort();
    connections.close();
    await Promise.allSettled(underWay);
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

interface FailedAttempt {
  readonly error: GatewayError;
  /** Also `nothing` if breaker or bucket refused the call, so that nothing was sent. */
  readonly verdict: Verdict;
  /** Milliseconds from the token to the failure; 0 if breaker or bucket refused the call. */
  readonly lastedMs: number;
}

const maxRetries = 2;
/** The longest first pause, in milliseconds; the second one is twice as long. */
const firstPauseMs = 100;

function ended(error: GatewayError, verdict: Verdict = "nothing", lastedMs = 0): FailedAttempt {
  return { error, verdict, lastedMs };
}

function refusedByBreaker(refusalMs = 0): GatewayError {
  const message = "the payments service keeps failing: the call was not sent";
  return unavailable(message, undefined, Math.max(1, Math.ceil(refusalMs)));
}

/** Settles the permit of a request that was sent, by the head of its own answer if there is one. */
function settle(permit: Permit, head: HttpHead | undefined, rateLimited = false): void {
  const headers = head ? rateLimitHeaders(head) : {};
  if (rateLimited) permit.rejected(headers);
  else permit.observe(headers);
}

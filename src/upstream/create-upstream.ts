import { setTimeout as delay } from "node:timers/promises";
import { ByAge } from "../collections/by-age.ts";
import { UnderWay } from "../collections/under-way.ts";
import {
  type ErrorCode,
  errorOfAbort,
  GatewayError,
  shuttingDown,
  unlessAborted,
} from "../errors.ts";
import type { Permit } from "../ratelimit/bucket.ts";
import { noReport } from "../report.ts";
import { noTracing } from "../telemetry/tracing/tracing.ts";
import { createBreaker } from "./breaker.ts";
import { calls, type RestCall } from "./calls.ts";
import { createConnections } from "./connections.ts";
import { hideSecretsOf } from "./echoed-secrets.ts";
import { type ExchangeFailure, exchange, type HttpResponse } from "./exchange.ts";
import { customerHeaders, merchantHeaders, rateLimitHeaders } from "./headers.ts";
import { type Failure, failureOf, unavailable, unavailableRetryMs } from "./outcome.ts";
import { type ParsedResponse, parseResponse } from "./parse-response.ts";
import type { SendOptions, Upstream, UpstreamOptions } from "./upstream.ts";

/** Creates the client of the payments service for one account. It does not close the bucket. */
export function createUpstream(options: UpstreamOptions): Upstream {
  const { account, bucket, timeoutMs, report = noReport, tracing = noTracing } = options;
  const { budget, payoutEnds, random = Math.random } = options;
  const { name } = account;
  const { origin, pathname, hostname, port, protocol } = new URL(account.url);
  const { connections = createConnections({ origin, timeoutMs }) } = options;
  const breakerOf = (calls: "money" | "other") =>
    createBreaker((state) => report("breaker", { account: name, calls, state }));
  // Failing reads never block a payment.
  const breakers = { money: breakerOf("money"), other: breakerOf("other") };
  const count = budget && ((onDrop: () => void) => budget.open(connections, onDrop));
  const basePath = pathname.replace(/(?<!\/)\/+$/, "");
  const server = {
    "server.address": hostname,
    "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
  };
  const { withBody, bodiless, secrets } = merchantHeaders(account.login, account.password.reveal());
  const underWay = new UnderWay<Promise<unknown>>();
  /** Those that are sent, by what is asked. */
  const reads = new ByAge<Promise<unknown>>();
  let retriesLeft = maxRetriesLeft;
  let credentialsAccepted: boolean | undefined;
  const closing = new AbortController();
  let closed: Promise<void> | undefined;

  /**
   * A call that changes something is written to a socket at most once. One that changes nothing is
   * sent again at most twice, after a pause with jitter.
   */
  async function send(call: RestCall<unknown>, sending: SendOptions): Promise<unknown> {
    if (closing.signal.aborted) throw shuttingDown();
    const { signal } = sending;
    let failed: GatewayError | undefined;
    let leftMs = timeoutMs;
    if (call.method === "GET") retriesLeft = Math.min(retriesLeft + retriesPerRead, maxRetriesLeft);
    for (let retries = 0; ; retries++) {
      const outcome = await attempt(call, { ...sending, timeoutMs: leftMs });
      if (outcome.kind === "result") return outcome.result;
      const { error, verdict } = outcome;
      if (call.method !== "GET") throw error;
      // The gateway stopped this retry: the earlier failure says more.
      if (failed && verdict === "nothing" && !signal.aborted) throw failed;
      failed = error;
      const pauseMs = random() * firstPauseMs * 2 ** retries;
      leftMs -= outcome.lastedMs + pauseMs;
      // A service that asks for a longer pause says when it will answer.
      const mayRetry = verdict === "failed" && error.details.retryAfterMs === unavailableRetryMs;
      if (!mayRetry || retries === maxRetries || leftMs <= 0 || retriesLeft < 1) throw error;
      retriesLeft--;
      const ended = AbortSignal.any([signal, closing.signal]);
      await delay(pauseMs, undefined, { signal: ended }).catch(() => {});
      if (closing.signal.aborted) throw error;
    }
  }

  /**
   * Identical reads of one caller in flight share their requests and one result, which callers must
   * not change. When the caller leaves for whom it was sent, the others have it sent anew: a signal
   * for all of them, as `SharedCalls` has, would cost each read a tenth more.
   */
  async function share(call: RestCall<unknown>, sending: SendOptions): Promise<unknown> {
    const { caller, signal } = sending;
    if (signal.aborted) throw errorOfAbort(signal);
    // The key names the caller, so that no caller waits for another caller's turn.
    const parts = [caller?.name ?? "", call.target, ...customerHeaders(call.customer)];
    const key = JSON.stringify(parts);
    const sent = reads.get(key);
    if (!sent) {
      // Whether its turn comes in time is the same for all of them: by `maxWaitMs`, not by a deadline.
      const answer = send(call, { caller, signal });
      reads.set(key, answer);
      const over = () => void (reads.get(key) === answer && reads.delete(key));
      answer.then(over, over);
      return answer;
    }
    try {
      return await unlessAborted(sent, signal, () => errorOfAbort(signal));
    } catch (error) {
      if (signal.aborted || !(error instanceof GatewayError) || !leftBy.has(error.code))
        throw error;
      return share(call, sending);
    }
  }

  /**
   * Makes one attempt: asks the breaker, takes a token, writes the request to a socket at most once
   * and reads the answer. Takes at most `timeoutMs` once it has its token.
   */
  async function attempt(
    call: RestCall<unknown>,
    { signal, deadlineMs, caller, onSent, timeoutMs }: SendOptions & { readonly timeoutMs: number },
  ): Promise<ParsedResponse<unknown> & { readonly lastedMs: number }> {
    const { endpoint, method, path, moneyKind: kind } = call;
    const money = kind && { kind, externalId: call.externalId ?? "" };
    const breaker = money ? breakers.money : breakers.other;
    const customer = customerHeaders(call.customer);
    const headers = call.body === undefined ? bodiless : withBody;

    // Checked before the wait for a token too: an open breaker makes that wait useless.
    if (breaker.refuses()) return notSent(unavailable(keepsFailing));
    const askedAt = performance.now();
    let permit: Permit;
    try {
      const priority = money ? "money" : "read";
      permit = await bucket.take({ priority, caller, signal, deadlineMs });
    } catch (error) {
      if (error instanceof GatewayError) return notSent(error);
      throw error;
    }
    const judge = breaker.enter();
    if (!judge) return notSent(unavailable(keepsFailing));

    const startedAt = performance.now();
    const span = tracing.start(endpoint, {
      kind: "client",
      attributes: () => ({
        ...server,
        "http.request.method": method,
        "url.template": path,
        "payments_gateway.account": name,
        "payments_gateway.rate_limit.wait": (startedAt - askedAt) / 1_000,
      }),
    });

    const request = {
      method,
      path: basePath + call.target,
      headers: [...headers, ...customer, ...span.headers()],
      body: call.body ?? null,
    };
    const exchanged = exchange(connections, request, {
      ...{ signal, timeoutMs, onSent },
      // Without its answer, the outcome of a call that moves money would be unknown: it is kept.
      count: money ? undefined : count,
      finishOnceSent: money !== undefined,
    });
    const member = underWay.add(exchanged);
    const answer = await exchanged;
    member.leave();

    const lastedMs = performance.now() - startedAt;
    // Worked out once, and only for an answer that has such texts.
    let hide: ReturnType<typeof hideSecretsOf> | undefined;
    const outcome: ParsedResponse<unknown> =
      "failure" in answer
        ? failureOf(answer, lastedMs, money)
        : parseResponse(answer, call, {
            money,
            payoutEnds,
            asCustomer: customer.length > 0,
            hideSecrets(text) {
              hide ??= hideSecretsOf(call.schema, call.request, secrets);
              return hide(text);
            },
            onFault: (fault) => report("fieldFault", { account: name, endpoint, ...fault }),
          });
    const failure = outcome.kind === "error" ? outcome : undefined;
    const { sent, head, status } =
      "failure" in answer
        ? { ...answer, status: undefined }
        : { sent: true, head: answer, status: answer.status };
    const verdict = failure?.verdict ?? "answered";
    // While calls that move money can be sent, they are sent: one that succeeds is worth more than
    // one that is spared. Refused is only what would fail after its wait for a connection.
    judge(money && sent && verdict !== "nothing" ? "answered" : verdict);
    // The headers of an answer to another request say nothing of this one either.
    const rates = head && !failure?.mixedUp ? rateLimitHeaders(head) : {};
    if (failure?.rateLimited) permit.rejected(rates);
    else if (sent) permit.observe(rates);
    if (failure?.mixedUp) {
      connections.onMixUp();
      report("mixUp", { account: name, endpoint });
    }

    report("upstreamCall", {
      ...{ account: name, endpoint, outcome: `${status ?? failure?.error.code}` },
      ...{ fault: failure?.fault, durationMs: lastedMs, traceparent: span.traceparent },
    });
    span.set({ "http.response.status_code": status });
    const errorType = errorTypeOf(answer, failure);
    if (errorType !== undefined) span.fail(errorType);
    span.end();
    if (!failure) reportCredentials(true);
    else if (failure.credentialsRefused) reportCredentials(false);
    return { ...outcome, lastedMs };
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
    async (request: never, sending: SendOptions) => {
      const call = callOf(request) as RestCall<unknown>;
      return call.method === "GET" ? share(call, sending) : send(call, sending);
    },
  ]);
  return {
    ...Object.fromEntries(sends),
    get inFlight() {
      return underWay.size;
    },
    close: () => (closed ??= close()),
  };
}

const maxRetries = 2;
/** Retries never amplify an outage: at most a tenth of an account's reads, and ten at once. */
const [retriesPerRead, maxRetriesLeft] = [0.1, 10];
/** The longest first pause, in milliseconds; the second one is twice as long. */
const firstPauseMs = 100;

const keepsFailing = "the payments service keeps failing: the call was not sent";

/** How a read ends whose caller left. */
const leftBy: ReadonlySet<ErrorCode> = new Set(["CANCELLED", "DEADLINE_EXCEEDED"]);

/** The outcome of a call that breaker or bucket refused. */
function notSent(error: GatewayError) {
  return { kind: "error", error, verdict: "nothing", lastedMs: 0 } as const;
}

/** OpenTelemetry's `error.type` of a call; undefined for one that was answered. */
function errorTypeOf(answer: HttpResponse | ExchangeFailure, failure: Failure | undefined) {
  if ("failure" in answer) return answer.failure;
  if (answer.status >= 400) return `${answer.status}`;
  return failure?.verdict === "failed" ? "answer" : undefined;
}

import { UnderWay } from "../collections/under-way.ts";
import { type ErrorCode, GatewayError } from "../errors.ts";
import type { Droppable } from "../net/memory-budget.ts";
import { reasonOf, systemCode } from "../net/system-errors.ts";
import type { Permit } from "../ratelimit/bucket.ts";
import type { Attributes } from "../telemetry/tracing/attributes.ts";
import type { Breaker, Verdict } from "./breaker.ts";
import { hideSecretsOf } from "./echoed-secrets.ts";
import { type ExchangeFailure, exchange, type FailureKind, type HttpHead } from "./exchange.ts";
import { customerHeaders, merchantHeaders, rateLimitHeaders } from "./headers.ts";
import { type Money, outcomeUnknown, unavailable } from "./outcome.ts";
import { parseResponse } from "./parse-response.ts";
import type { RestCall } from "./rest-call.ts";
import type { SendOptions, UpstreamOptions } from "./upstream.ts";

/** The options of a client, with its own parts and defaults. */
interface AttemptOptions
  extends Pick<UpstreamOptions, "account" | "bucket" | "onMoneyCall" | "payoutEnds" | "budget">,
    Required<Pick<UpstreamOptions, "connections" | "report" | "tracing">> {
  readonly breakers: Readonly<Record<"money" | "other", Breaker>>;
}

/** How one attempt ended. */
export type Attempted<Result> =
  | { readonly kind: "result"; readonly result: Result }
  | {
      readonly kind: "failure";
      readonly error: GatewayError;
      /** Also `nothing` if breaker or bucket refused the call, so that nothing was sent. */
      readonly verdict: Verdict;
      /** Milliseconds from the token to the failure; 0 if breaker or bucket refused the call. */
      readonly lastedMs: number;
    };

/** Makes attempts at calls of one merchant account. */
export function createAttempts(options: AttemptOptions) {
  const { account, connections, bucket, breakers, report, tracing } = options;
  const { budget, payoutEnds } = options;
  const count = budget && ((answer: Droppable) => budget.open(connections, answer));
  const { name } = account;
  const { pathname, hostname, port, protocol } = new URL(account.url);
  const basePath = pathname.replace(/(?<!\/)\/+$/, "");
  const server = {
    "server.address": hostname,
    "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
  };
  const { withBody, bodiless, secrets } = merchantHeaders(account.login, account.password.reveal());
  const underWay = new UnderWay<Promise<unknown>>();
  let credentialsAccepted: boolean | undefined;

  /**
   * Makes one attempt: asks the breaker, takes a token, writes the request to a socket at most once
   * and reads the answer. Takes at most `timeoutMs` once it has its token.
   */
  async function make<Result>(
    call: RestCall<Result>,
    { signal, deadlineMs, caller, onSent, timeoutMs }: SendOptions & { readonly timeoutMs: number },
  ): Promise<Attempted<Result>> {
    const { moneyKind: kind } = call.endpoint;
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

    const endpoint = `${call.endpoint.method} ${call.endpoint.path}`;
    const startedAt = performance.now();
    const about = (): Attributes => ({
      ...server,
      "http.request.method": call.endpoint.method,
      "url.template": call.endpoint.path,
    });
    const span = tracing.start(endpoint, {
      kind: "client",
      attributes: () => ({
        ...about(),
        "payments_gateway.account": account.name,
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
    if (money) options.onMoneyCall?.({ ...money, trace: span.traceparent });
    report("upstreamInFlight", { account: name, change: 1 });

    const request = {
      method: call.endpoint.method,
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

  return {
    make,
    /** Resolves when the requests that are in flight now have ended. */
    async ended(): Promise<void> {
      await Promise.allSettled(underWay);
    },
  };
}

function ended(error: GatewayError, verdict: Verdict = "nothing", lastedMs = 0): Attempted<never> {
  return { kind: "failure", error, verdict, lastedMs };
}

function refusedByBreaker(refusalMs = 0): GatewayError {
  const message = "the payments service keeps failing: the call was not sent";
  return unavailable(message, undefined, Math.max(1, Math.ceil(refusalMs)));
}

/** The verdict on an exchange that failed `lastedMs` after its start. */
export function verdictOf({ failure, cause }: ExchangeFailure, lastedMs: number): Verdict {
  switch (failure) {
    case "kept":
      return "nothing";
    case "caller":
      // A caller with a short deadline must not open the breaker for others.
      return lastedMs >= slowMs ? "timeout" : "nothing";
    case "timeout":
      return "timeout";
    case "tooLarge":
      return "answered";
    case "connection":
      return timeouts.has((cause as NodeJS.ErrnoException)?.code) ? "timeout" : "failed";
  }
}

/** A caller that leaves after this long counts as an upstream time-out. */
const slowMs = 5_000;

const timeouts: ReadonlySet<unknown> = new Set(["UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT"]);

/** Settles the permit of a request that was sent, by the head of its own answer if there is one. */
function settle(permit: Permit, head: HttpHead | undefined, rateLimited = false): void {
  const headers = head ? rateLimitHeaders(head) : {};
  if (rateLimited) permit.rejected(headers);
  else permit.observe(headers);
}

function errorOfFailure(
  { failure, sent, cause }: ExchangeFailure,
  money: Money | undefined,
): GatewayError {
  // Whatever ended the exchange, a money call that was sent has an unknown outcome.
  if (sent && money) return outcomeUnknown(money.externalId, { cause });
  if (failure === "caller") return cause as GatewayError;
  if (failure === "kept") {
    return cause instanceof GatewayError ? cause : unavailable("the call was not sent", cause);
  }
  if (!sent) return unavailable("the payments service cannot be reached", cause);
  return unavailable(`the call to the payments service failed: ${faults[failure]}`, cause);
}

/** Why there is no answer, in words that quote nothing of it. */
function faultOf({ failure, cause }: ExchangeFailure): string {
  if (failure !== "connection" || !(cause instanceof Error)) return faults[failure];
  const code = systemCode(cause);
  if (isRefusedAnswer(cause, code)) return "the answer breaks the rules of HTTP/1.1";
  return code === undefined ? faults[failure] : reasonOf(code);
}

/** Whether undici itself closed the connection, on a 100 Continue that nobody asked for, say. */
function isRefusedAnswer({ name, message }: Error, code: string | undefined): boolean {
  if (name === "HTTPParserError" || code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH") return true;
  return message === "bad response" || message === "bad upgrade";
}

const faults: Readonly<Record<FailureKind, string>> = {
  caller: "no answer before the caller's deadline",
  connection: "the connection was lost",
  kept: "the request was not let out",
  timeout: "no answer in time",
  tooLarge: "the answer was too long",
};

function faultOfAnswer(status: number): string {
  return status >= 500 ? `HTTP ${status}` : `HTTP ${status}, and the answer was not understood`;
}

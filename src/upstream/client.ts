import { type buildConnector, Pool } from "undici";
import type { GatewayError } from "../errors.ts";
import type { Permit, TokenBucket } from "../ratelimit/bucket.ts";
import { type Understood, understand } from "./answer.ts";
import { hideSecretsOf } from "./echoed-secrets.ts";
import { ExchangeFailure, exchange, type HttpAnswer } from "./exchange.ts";
import { basicAuthorization, customerHeaders, merchantHeaders } from "./headers.ts";
import { createInFlight } from "./in-flight.ts";
import { outcomeUnknown, unavailable } from "./outcome.ts";
import type { RestCall } from "./rest-call.ts";
import { rateLimitHeaders } from "./retry-after.ts";
import type { MerchantAccount, SendOptions, UpstreamObserver } from "./upstream.ts";

export interface ClientOptions {
  readonly account: MerchantAccount;
  readonly bucket: TokenBucket;
  /** UPSTREAM_TIMEOUT: longest that one call may take once it has its token. */
  readonly timeoutMs: number;
  readonly observer: UpstreamObserver;
  /** For https: a private CA, say. Default: Node's own trust. */
  readonly tls?: Partial<buildConnector.BuildOptions>;
  /** A longer body is not understood. Default: 4 MiB. */
  readonly maxResponseBytes?: number;
}

/** Sends calls of one merchant account; the errors are those of `Upstream`. */
export interface Client {
  /** A call that changes something: written to a socket once at most, whatever happens. */
  send<Result>(call: RestCall<Result>, options: SendOptions): Promise<Result>;
  /**
   * A call that changes nothing. Identical ones in flight share one request and its result, which
   * nobody may change; `onSent` is not called.
   */
  read<Result>(call: RestCall<Result>, options: SendOptions): Promise<Result>;
  close(): Promise<void>;
}

export function createClient(options: ClientOptions): Client {
  const { account, bucket, timeoutMs, observer } = options;
  const { maxResponseBytes = 4 * 1024 * 1024 } = options;
  const { origin, pathname } = new URL(account.url);
  const basePath = pathname.replace(/\/+$/, "");
  const authorization = basicAuthorization(account.login, account.password.reveal());
  const { withBody, bodiless } = merchantHeaders(authorization);
  const pool = createPool(origin, options);
  const inFlight = createInFlight();
  const underWay = new Set<Promise<unknown>>();
  let credentialsAccepted: boolean | undefined;
  let closed: Promise<void> | undefined;

  async function send<Result>(call: RestCall<Result>, sending: SendOptions): Promise<Result> {
    const { signal, deadlineMs, onSent } = sending;
    const { moneyExternalId } = call;
    const movesMoney = moneyExternalId !== undefined;
    const patience = deadlineMs === undefined ? { signal } : { signal, deadlineMs };
    const customer = customerHeaders(call.customer);
    const headers = call.body === undefined ? bodiless : withBody;

    const permit = await bucket.take({ priority: movesMoney ? "money" : "read", ...patience });
    const endpoint = `${call.endpoint.method} ${call.endpoint.path}`;
    const startedAt = performance.now();
    const tellCall = (outcome: string) =>
      observer.onCall({ endpoint, outcome, durationMs: performance.now() - startedAt });

    let answer: HttpAnswer;
    try {
      const request = {
        method: call.endpoint.method,
        path: basePath + call.target,
        headers: customer.length === 0 ? headers : [...headers, ...customer],
        body: call.body ?? null,
      };
      const limits = { ...patience, timeoutMs, maxResponseBytes, finishOnceSent: movesMoney };
      const exchanged = exchange(pool, request, { ...limits, onSent });
      underWay.add(exchanged);
      answer = await exchanged.finally(() => underWay.delete(exchanged));
    } catch (failure) {
      if (!(failure instanceof ExchangeFailure)) throw failure;
      settleUnanswered(permit, failure);
      const error = errorOfFailure(failure, moneyExternalId);
      tellCall(error.code);
      throw error;
    }

    const understood = understand<Result>(answer, {
      read: call.read,
      moneyExternalId,
      isResult: call.isResult,
      asCustomer: customer.length > 0,
      hideSecrets: (text) => hideLogin(hideSecretsOf(call.schema, call.request)(text)),
      onFault: ({ path }) => observer.onFieldFault({ endpoint, path }),
    });
    settleAnswered(permit, answer, understood);
    tellCall(String(answer.status));
    if (understood.kind === "result") {
      tellCredentials(true);
      return understood.result;
    }
    if (understood.credentialsRefused) tellCredentials(false);
    throw understood.error;
  }

  function tellCredentials(accepted: boolean): void {
    if (accepted === credentialsAccepted) return;
    credentialsAccepted = accepted;
    observer.onCredentials(accepted);
  }

  function hideLogin(text: string): string {
    const secrets = [authorization.slice("Basic ".length), account.password.reveal()];
    return secrets
      .filter((secret) => secret.length > 3)
      .reduce((hidden, secret) => hidden.replaceAll(secret, "[redacted]"), text);
  }

  /** undici alone would wait for connections that nobody waits for any more. */
  async function close(): Promise<void> {
    pool.close().catch(() => {}); // From now on it takes no requests.
    await Promise.allSettled(underWay);
    await pool.destroy();
  }

  return {
    send,
    read: (call, sending) => {
      const key = [call.target, ...customerHeaders(call.customer)].join("\n");
      return inFlight.share(key, sending, (signal) => send(call, { signal }));
    },
    close: () => (closed ??= close()),
  };
}

/** HTTP/1.1, one request at a time on a connection, so that undici never writes one again. */
function createPool(origin: string, { timeoutMs, tls }: ClientOptions): Pool {
  return new Pool(origin, {
    connections: 256,
    pipelining: 1,
    allowH2: false,
    connect: { ...tls, timeout: Math.min(timeoutMs, 10_000) },
    // The exchange's own time-out spans the whole call, to the millisecond; undici's are coarser.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

function settleUnanswered(permit: Permit, { sent, head }: ExchangeFailure): void {
  if (!sent) permit.release();
  else if (head?.status === 429) permit.rejected(rateLimitHeaders(head));
  else permit.observe(head ? rateLimitHeaders(head) : {});
}

function settleAnswered(permit: Permit, answer: HttpAnswer, understood: Understood<unknown>): void {
  const headers = rateLimitHeaders(answer);
  if (understood.kind === "error" && understood.rateLimited) permit.rejected(headers);
  else permit.observe(headers);
}

function errorOfFailure(
  { kind, sent, cause }: ExchangeFailure,
  moneyExternalId: string | undefined,
): GatewayError {
  if (kind === "caller") return cause as GatewayError;
  if (sent && moneyExternalId !== undefined) return outcomeUnknown(moneyExternalId, { cause });
  return unavailable(sent ? texts[kind] : "the payments service cannot be reached", cause);
}

const texts = {
  timeout: "the payments service did not answer in time",
  connection: "the connection to the payments service was lost",
  tooLarge: "the payments service's answer was too long",
} as const;

import type { PayoutEnds } from "../model/payout-statuses.ts";
import type { MemoryBudget } from "../net/memory-budget.ts";
import type { TurnTaker } from "../ratelimit/bucket.ts";
import type { TokenBucket } from "../ratelimit/queued-bucket.ts";
import type { Report } from "../report.ts";
import type { Secret } from "../secrets/secret.ts";
import type { Tracing } from "../telemetry/tracing/tracing.ts";
import type { calls } from "./calls.ts";
import type { Connections } from "./connections.ts";

/** One merchant's account at the payments service. */
export interface MerchantAccount {
  readonly name: string;
  /** Base address of the REST interface, without a slash at its end. */
  readonly url: string;
  readonly login: string;
  readonly password: Secret;
  /** Still accepted for callback signatures while the password is rotated. */
  readonly previousPasswords: readonly Secret[];
}

export interface UpstreamOptions {
  readonly account: MerchantAccount;
  readonly bucket: TokenBucket;
  /** UPSTREAM_TIMEOUT: the most that one call may take once it has its token. */
  readonly timeoutMs: number;
  /** Default: nothing is reported. */
  readonly report?: Report;
  /** Default: no call is traced, and no trace context is sent. */
  readonly tracing?: Tracing;
  /** The connections to the service. Default: HTTP/1.1, up to 256 as needed. */
  readonly connections?: Connections;
  /** Counts the answers of calls that move no money. Default: they are not counted. */
  readonly budget?: Pick<MemoryBudget, "open">;
  /** The service's final payout statuses. Default: success and failure. */
  readonly payoutEnds?: PayoutEnds;
  /** 0 to 1, for the jitter of pauses. Default: Math.random. */
  readonly random?: () => number;
}

export interface SendOptions {
  /**
   * For calls that move money: cancels the call until it is sent, and not after that; a call that
   * was sent goes on to its answer or the upstream time-out. For all other calls: cancels the call,
   * down to the socket.
   */
  readonly signal: AbortSignal;
  /**
   * When `signal` will abort, in milliseconds since the epoch: no call waits for a token that would
   * come too late.
   */
  readonly deadlineMs?: number | undefined;
  /** Whose turn at the account's budget the call takes. Calls without a caller share turns. */
  readonly caller?: TurnTaker | undefined;
  /**
   * Called once, right before the request is written: from then on a failure without an understood
   * answer leaves the outcome unknown. If it throws, nothing is sent, and the call throws the same
   * error if that is a GatewayError, else UNAVAILABLE.
   */
  readonly onSent?: () => void;
}

/**
 * The payments service for one merchant account: a method per REST call, see `calls.ts`. Requests
 * must have passed validation. Each request takes a token of the account's rate budget first. Reads
 * that the service fails to answer (`failed` in `breaker.ts`) are sent again, at most twice; every
 * other call is sent at most once.
 *
 * @throws GatewayError by the table of `error-codes.ts`: with `upstream` for an Error object;
 * UNAVAILABLE if the service cannot be reached, or the breaker refused the call; UNKNOWN with
 * `outcomeUnknown` for a call that moves money and was sent, but got no answer that was understood.
 */
export type Upstream = {
  readonly [Name in keyof typeof calls]: (
    request: Parameters<(typeof calls)[Name]>[0],
    options: SendOptions,
  ) => Promise<ReturnType<ReturnType<(typeof calls)[Name]>["read"]>>;
} & {
  /** Requests that were sent and have no answer yet. */
  readonly inFlight: number;
  /** Refuses new calls, waits for those in flight, and closes all connections. */
  close(): Promise<void>;
};

/** What the gateway has for one merchant account: its client of the service and its rate budget. */
export interface Account {
  readonly upstream: Upstream;
  readonly bucket: TokenBucket;
}

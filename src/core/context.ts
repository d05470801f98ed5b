import type { WatchTokens } from "../auth/watch-token.ts";
import type { Drain } from "../live/drain.ts";
import type { Resource } from "../model/kinds.ts";
import type { Report } from "../report.ts";
import type { Tracing } from "../telemetry/tracing/tracing.ts";
import type { Account, Upstream } from "../upstream/upstream.ts";
import type { Call } from "./core.ts";
import type { MoneyCalls, MoneyCallsOptions } from "./money-calls.ts";
import type { StreamLimits } from "./stream-limits.ts";

export interface CoreOptions extends MoneyCallsOptions {
  readonly accounts: ReadonlyMap<string, Account>;
  readonly watchTokens: WatchTokens | undefined;
  /** Most streams that one caller may have open. Undefined: the defaults of `stream-limits.ts`. */
  readonly maxStreamsPerCaller: number | undefined;
  /** Whether records of calls name the external_id that a call is about. */
  readonly namesExternalIds: boolean;
  /** The address that the service sends an account's callbacks to, without a trailing slash. */
  readonly callbackUrl: (account: string, resource: Resource) => string;
  readonly report: Report;
  readonly tracing: Tracing;
}

/** What the use cases share. */
export interface Context extends CoreOptions {
  /** The client for the account of a call. */
  upstreamOf(call: Pick<Call, "caller">): Upstream;
  readonly moneyCalls: MoneyCalls;
  /** Ends all waits when the gateway shuts down, so that the waiting calls are answered. */
  readonly waits: Drain;
  /** Limits how many waits one caller has open. */
  readonly waitLimits: StreamLimits;
  /** Ends all streams when the gateway shuts down, each with the cursor to resume from. */
  readonly drain: Drain;
}

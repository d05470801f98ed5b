import type { WatchTokens } from "../auth/watch-token.ts";
import { ofAccount } from "../errors.ts";
import { Drain } from "../live/drain.ts";
import type { Resource } from "../model/kinds.ts";
import type { Report } from "../report.ts";
import type { Tracing } from "../telemetry/tracing/tracing.ts";
import type { Account } from "../upstream/upstream.ts";
import type { Call } from "./core.ts";
import { createMoneyCalls, type MoneyCallsOptions } from "./money-calls.ts";
import { createStreamLimits } from "./stream-limits.ts";

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
export type Context = ReturnType<typeof createContext>;

/** Most open waits per caller; a wait costs what a stream costs. */
const maxWaitsPerCaller = 10_000;

export function createContext(options: CoreOptions) {
  /** The service and the rate budget of a call's account. */
  const accountOf = ({ caller }: Pick<Call, "caller">) =>
    ofAccount(options.accounts, caller.account);
  return {
    ...options,
    accountOf,
    upstreamOf: (call: Pick<Call, "caller">) => accountOf(call).upstream,
    moneyCalls: createMoneyCalls(options),
    /** Ends all waits when the gateway shuts down, so that the waiting calls are answered. */
    waits: new Drain(),
    waitLimits: createStreamLimits(maxWaitsPerCaller),
    /** Ends all streams when the gateway shuts down, each with the cursor to resume from. */
    drain: new Drain(),
  };
}

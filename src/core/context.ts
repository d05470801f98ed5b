import type { WatchTokens } from "../auth/watch-token.ts";
import type { PayoutEnds } from "../events/entry.ts";
import type { Appended, Cursor, Entry, EventLog, Facts } from "../events/log.ts";
import type { IntentStore } from "../intents/store.ts";
import type { Resource } from "../model/kinds.ts";
import type { TokenBucket } from "../ratelimit/bucket.ts";
import type { Keyring } from "../secrets/keyring.ts";
import type { Tracing } from "../telemetry/tracing/tracing.ts";
import type { Upstream } from "../upstream/upstream.ts";
import type { MoneyCalls } from "./money-calls.ts";
import type { StreamObserver } from "./observed-streams.ts";
import type { StreamDrain } from "./stream-drain.ts";
import type { StreamLimits } from "./stream-limits.ts";
import type { Waits } from "./waits.ts";

/** One merchant account's side of the gateway. */
export interface Account {
  readonly upstream: Upstream;
  readonly bucket: TokenBucket;
}

export interface CoreOptions {
  readonly accounts: ReadonlyMap<string, Account>;
  readonly log: EventLog;
  readonly intents: IntentStore;
  /** By account. */
  readonly keyrings: ReadonlyMap<string, Keyring>;
  /** Longest that a call waits for a token, and longest that it takes once it is sent. */
  readonly timeouts: { readonly maxWaitMs: number; readonly timeoutMs: number };
  readonly watchTokens: WatchTokens | undefined;
  /** Streams that one caller may have open; undefined: the defaults of `stream-limits.ts`. */
  readonly maxStreamsPerCaller?: number | undefined;
  /** Where the upstream sends an account's callbacks, without a slash at its end. */
  readonly callbackUrl: (account: string, resource: Resource) => string;
  /** The service's words for the end of a payout. */
  readonly payoutEnds: PayoutEnds;
  readonly observer: CoreObserver;
  /** Default: nothing is traced. */
  readonly tracing?: Tracing;
}

/** What the core tells its surroundings, for metrics and logs. */
export interface CoreObserver extends Partial<StreamObserver> {
  /** An answer could not be written to the event log: it is looked up until it is there. */
  onUnrecorded(failure: { account: string; externalId: string; error: unknown }): void;
  /** Two different final states of one operation: both are kept. */
  onConflict(conflict: { account: string; externalId: string }): void;
}

export interface Recorded {
  readonly entry: Entry;
  /** Undefined when it could not be written. */
  readonly appended: Appended | undefined;
}

/** What the state of an external_id follows from, and the place in the log that it is of. */
export interface After {
  readonly facts: Facts;
  readonly callIsOpen: boolean;
  /** Empty where the log does not know yet. */
  readonly cursor: Cursor;
}

/** What the use cases share. */
export interface Context extends CoreOptions {
  /** The caller's account. */
  account(name: string): Account;
  readonly moneyCalls: MoneyCalls;
  /** What an answer to a call that moves money told the log, and what became of it there. */
  readonly recorded: WeakMap<object, Recorded>;
  /** Of answers that were waited for, what was known in the end. */
  readonly waited: WeakMap<object, After>;
  /** When the gateway shuts down, calls that wait are answered. */
  readonly waits: Waits;
  /** Waits that one caller may have open. */
  readonly waitLimits: StreamLimits;
  /** When the gateway shuts down, streams end with the cursor to resume from. */
  readonly drain: StreamDrain;
}

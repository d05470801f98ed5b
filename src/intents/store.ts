import { createHash } from "node:crypto";
import type { Kind } from "../model/kinds.ts";

/** The calls that move money, by their names in the contract. */
export type MoneyMethod =
  | "CreatePayment"
  | "CreateRecurrentPayment"
  | "ConfirmPayment"
  | "RequestPayout";

/** A call that is about to be sent. It holds no card data, nor anything else of the request. */
export interface NewIntent {
  /** Unique; what is written for another id changes nothing. */
  readonly id: string;
  readonly method: MoneyMethod;
  readonly kind: Kind;
  readonly externalId: string;
  /** Longest that the call takes until it has ended here; after that its replica is gone. */
  readonly leaseMs: number;
  readonly key?: KeyUse;
}

/** One use of an `Idempotency-Key`. */
export interface KeyUse {
  /** Of method and key. */
  readonly digest: string;
  /** Of the other methods and the key, which must not have been used for any of them. */
  readonly otherDigests?: readonly string[];
  /**
   * Keyed hashes of the request, one per password that is accepted, the present one first: they
   * distinguish another request, and reveal nothing of its content.
   */
  readonly fingerprints: readonly string[];
}

/**
 * How far a call has come:
 * - `running`: begun and not ended; once its lease is over, its outcome is unknown;
 * - `unknown`: sent, and no answer was understood;
 * - `pending`: answered, and what it made has not come to its end.
 */
export type IntentState = "running" | "unknown" | "pending";

/** A call that moves money and is not settled. */
export interface Intent extends Pick<NewIntent, "id" | "method" | "kind" | "externalId"> {
  readonly state: IntentState;
  /** In milliseconds since the epoch, on the store's clock. */
  readonly startedAtMs: number;
  readonly leaseUntilMs: number;
  /** The payment_id or transaction_id of a pending one. */
  readonly subjectId: string;
  /**
   * Marks of attempts for the external_id that are accounted for: what they do is not its doing (see
   * evidence.ts). As of now from `open`; else as of its beginning.
   */
  readonly answered: readonly string[];
  /** How often it was looked up, and how often in a row the service did not know it. */
  readonly checks: number;
  readonly notFound: number;
  /** Given up: an operator has to look. */
  readonly needsOperator: boolean;
  readonly keyDigest: string;
}

export type Begun =
  /** Go. What must not be sent any more once the lease is over. */
  | { readonly kind: "started"; readonly intent: Intent }
  /** Another call of the method has no understood answer yet for the external_id. */
  | { readonly kind: "inFlight" }
  /** The key was used for another request. */
  | { readonly kind: "keyReused" }
  /** The key's first call has no answer yet. */
  | { readonly kind: "keyRunning" }
  /** The outcome of the key's first call is unknown. */
  | { readonly kind: "keyUnknown" }
  /** The key's first call has this answer. */
  | { readonly kind: "keyAnswered"; readonly answer: Buffer };

/**
 * What became of a call. An unknown outcome is remembered as unknown under its key. `mark` is what is
 * told from now on as `answered` to those that are open for the external_id.
 */
export type Ending =
  /** It was never sent, or is over. */
  | { readonly state: "closed"; readonly mark?: string; readonly key: KeyEnding }
  | {
      readonly state: "pending";
      /** Empty when the answer did not name what it made. */
      readonly subjectId: string;
      /** Default: the subject's id, if it has one. */
      readonly mark?: string;
      readonly key: KeyEnding;
    }
  | { readonly state: "unknown" };

/** What an ending adds to `answered`. */
export function markOfEnding(ending: Ending): string | undefined {
  if (ending.state === "unknown") return undefined;
  return ending.mark ?? ((ending.state === "pending" && ending.subjectId) || undefined);
}

/** What becomes of the call's key: it is free again, or has this answer, or stays as it is. */
export type KeyEnding = "free" | "keep" | Buffer;

/** What is pending without a call of ours, or without one that is still remembered. */
export interface Pending extends Pick<NewIntent, "method" | "kind" | "externalId"> {
  readonly subjectId: string;
  /** How long ago it was first reported. */
  readonly ageMs: number;
}

/** A payment or payout. */
export type Subject = Pick<NewIntent, "kind" | "externalId">;

/** When an intent is looked at next, and what is remembered of the looks before. */
export interface NextLook extends Pick<Intent, "checks" | "notFound"> {
  readonly inMs: number;
}

/** For metrics. Intents beyond the oldest 1,000 are not looked into. */
export interface IntentStats {
  readonly unknown: number;
  readonly pending: number;
  /** When the oldest of unknown outcome began, in milliseconds since the epoch. */
  readonly oldestUnknownMs?: number;
}

/** See `IntentStore.unsettled`. */
export interface Unsettled {
  readonly intents: readonly UnsettledIntent[];
  /** How many there are, with those that are not listed. */
  readonly total: number;
}

export interface UnsettledIntent extends Intent {
  /** When it is looked at next, in milliseconds since the epoch; absent for one that was given up. */
  readonly nextLookMs?: number;
}

/**
 * What all replicas know of calls that move money: their intents, recorded before anything leaves,
 * the lock on an external_id, and the uses of `Idempotency-Key`.
 *
 * What every implementation promises (and `test/contracts/intent-store.ts` holds it to):
 * - begin is one step: key, lock and intent are taken together or not at all;
 * - the lock is of method, kind and external_id: each open call holds its own until it has an answer,
 *   so that what was adopted beside another call is ended, or given up, by itself;
 * - a call that is not ended within its lease counts as one of unknown outcome: key and lock stay;
 * - a key is kept for 24 hours, a lock until its call is settled or RECONCILE_GIVE_UP has passed;
 * - an ending is never lost while this process lives: it is written once the store is back.
 */
export interface IntentStore {
  /** @throws GatewayError UNAVAILABLE for a call with a key when the store is out of reach. */
  begin(account: string, intent: NewIntent): Promise<Begun>;
  /** Never throws: what cannot be written now is written later. Ending it again does no harm. */
  end(account: string, intent: Intent, ending: Ending): Promise<void>;
  /** Calls for one external_id that are not settled, the oldest first, as they are at one instant. */
  open(account: string, kind: Kind, externalId: string): Promise<Intent[]>;

  /**
   * Looks after what is pending as after an answered call, from now on; a repeat changes nothing.
   * @returns false if so many are looked after that this one has to wait
   */
  track(account: string, pending: Pending): Promise<boolean>;
  /** Those whose time to be looked at has come, the longest due first. Leases that ran out count. */
  due(account: string, limit: number): Promise<Intent[]>;
  /** Looks again later. */
  postpone(account: string, intent: Intent, next: NextLook): Promise<void>;
  /**
   * Makes those of these external_ids due now, unless they are running.
   * @returns whether any is due now
   */
  scheduleNow(account: string, subjects: readonly Subject[]): Promise<boolean>;
  /** Stops looking it up, releases the lock, and keeps the intent for an operator. */
  giveUp(account: string, intent: Intent): Promise<void>;
  stats(account: string): Promise<IntentStats>;
  /**
   * Calls of unknown or pending outcome, for people: those that were given up first, then the unknown
   * ones, the oldest first. Beyond 1,000 that are due first, and 1,000 that were given up last, none
   * is looked into.
   */
  unsettled(account: string, limit: number): Promise<Unsettled>;
  /** The clock by which intents are timed, in milliseconds since the epoch, as it was last received. */
  nowMs(account: string): number;
  /** Makes the holder the one that looks, or keeps it so, for `ttlMs`. False: another one does. */
  lease(account: string, holder: string, ttlMs: number): Promise<boolean>;
  close(): Promise<void>;
}

export interface IntentStoreOptions {
  /** RECONCILE_AFTER: when an intent of unknown or pending outcome is first looked at. */
  readonly firstLookMs: number;
  /** RECONCILE_GIVE_UP. */
  readonly giveUpMs: number;
}

/** How long an `Idempotency-Key` is remembered. */
export const keyRetentionMs = 24 * 3_600_000;

/** How long intents are kept behind `giveUpMs`: what was given up stays visible that long. */
export const keptBeyondMs = 7 * 24 * 3_600_000;

/** How many marks of answered attempts are remembered of an external_id. */
export const maxAnswered = 50;

/**
 * How long it is remembered that a call is over, so that what was held up on its way to the store
 * does not begin it again.
 */
export const endedForMs = 10 * 60_000;

/** Whether it is unknown what became of a call: no answer came, or its replica is gone. */
export function isUnknown({ state, leaseUntilMs }: Intent, nowMs: number): boolean {
  return state === "unknown" || (state === "running" && leaseUntilMs <= nowMs);
}

/** Of an account, while fewer intents are open what is pending without a call of ours is tracked too. */
export const maxTracked = 10_000;

/** What is pending, as an intent. */
export function intentOf(pending: Pending, nowMs: number): Intent {
  const { method, kind, externalId, subjectId, ageMs } = pending;
  const name = JSON.stringify([method, kind, externalId, subjectId]);
  return {
    id: `pending-${createHash("sha256").update(name).digest("base64url")}`,
    ...{ method, kind, externalId, subjectId, state: "pending", answered: [] },
    ...{ startedAtMs: nowMs - ageMs, leaseUntilMs: nowMs },
    ...{ checks: 0, notFound: 0, needsOperator: false, keyDigest: "" },
  };
}

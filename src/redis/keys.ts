import { boundedId } from "./bounded-id.ts";

/**
 * Every key that the gateway keeps in Redis, in one place. The part in braces is the cluster's hash
 * tag: all keys of one merchant account share a slot, so that one script may touch several of them.
 */
export interface AccountKeys {
  /** Token bucket: string, see take-tokens.lua. */
  readonly bucket: string;
  /** The state of the account's log, without its events: hash of `epoch`, `tail` and `mark`. */
  readonly log: string;
  /** All events of the account: stream. */
  readonly events: string;
  /** The ids in `events` of one payment's or payout's events: sorted set. */
  topic(kind: string, externalId: string): string;
  /** Last known states of one payment or payout: hash. */
  state(kind: string, externalId: string): string;
  /** Exists if a callback with a body of this digest was stored: string. */
  seenBody(digest: string): string;
  /** Exists if an event of this identity was stored: string, `c` if by a callback, else `o`. */
  seenIdentity(digest: string): string;
  /** Callbacks that were not understood, by id: hash. */
  readonly deadLetters: string;
  /** The ids of dead letters in order of arrival: sorted set. */
  readonly deadLetterOrder: string;
  /** The total length of the bodies of dead letters: string. */
  readonly deadLetterSize: string;
  /** Operations without a final status, by the time of their first event: sorted set. */
  readonly unfinished: string;
  /** Channel on which the id of each stored event is published, to wake readers of `events`. */
  readonly wakeUp: string;
  /** An intent: one call that moves money, until its outcome is known: hash. */
  intent(id: string): string;
  /** The ids of intents, by when reconciliation looks at each next: sorted set. */
  readonly intentsDue: string;
  /** The ids of intents that an operator must look at, by when they were given up: sorted set. */
  readonly intentsGivenUp: string;
  /** The intents of one payment or payout, and its locks: hash. */
  intentsOf(kind: string, externalId: string): string;
  /** One Idempotency-Key, by its digest: hash. */
  idempotency(digest: string): string;
  /** The replica that looks up lost outcomes: string. */
  readonly reconciler: string;
}

export function accountKeys(prefix: string, account: string): AccountKeys {
  const base = `${prefix}:{${account}}`;
  return {
    bucket: `${base}:bucket`,
    log: `${base}:log`,
    events: `${base}:events`,
    topic: (kind, externalId) => `${base}:topic:${kind}:${boundedId(externalId)}`,
    state: (kind, externalId) => `${base}:state:${kind}:${boundedId(externalId)}`,
    seenBody: (digest) => `${base}:seen:body:${digest}`,
    seenIdentity: (digest) => `${base}:seen:identity:${digest}`,
    deadLetters: `${base}:dead-letters`,
    deadLetterOrder: `${base}:dead-letters:order`,
    deadLetterSize: `${base}:dead-letters:size`,
    unfinished: `${base}:unfinished`,
    wakeUp: `${base}:wake-up`,
    intent: (id) => `${base}:intent:${id}`,
    intentsDue: `${base}:intents:due`,
    intentsGivenUp: `${base}:intents:given-up`,
    intentsOf: (kind, externalId) => `${base}:intents:of:${kind}:${boundedId(externalId)}`,
    idempotency: (digest) => `${base}:idempotency:${digest}`,
    reconciler: `${base}:reconciler`,
  };
}

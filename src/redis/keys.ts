import { boundedId } from "./bounded-id.ts";

/**
 * Every key that the gateway keeps in Redis, in one place. The part in braces is the cluster's hash
 * tag: all keys of one merchant account share a slot, so that one script may touch several of them.
 */
export interface AccountKeys {
  /** Token bucket: string, see take-tokens.lua. */
  readonly bucket: string;
  /** What the account's log is, beside its events: hash of `epoch` and `tail`. */
  readonly log: string;
  /** All events of the account: stream. */
  readonly events: string;
  /** Events of one payment or payout, by their ids in `events`: sorted set. */
  topic(kind: string, externalId: string): string;
  /** Last known states of one payment or payout: hash. */
  state(kind: string, externalId: string): string;
  /** The digest of a callback's body was seen: string. */
  seenBody(digest: string): string;
  /** What identifies an event was seen: string, `c` if a callback brought it, else `o`. */
  seenIdentity(digest: string): string;
  /** Callbacks that were not understood, by id: hash. */
  readonly deadLetters: string;
  /** Their ids in the order in which they came: sorted set. */
  readonly deadLetterOrder: string;
  /** The length of all their bodies together: string. */
  readonly deadLetterSize: string;
  /** Operations that have not come to their end, by the time of their first report: sorted set. */
  readonly unfinished: string;
  /** Channel on which the id of each stored event is published, to wake readers of `events`. */
  readonly wakeUp: string;
  /** One call that moves money, until its outcome is known: hash. */
  intent(id: string): string;
  /** The ids of all such calls, by when each is looked at next: sorted set. */
  readonly intentsDue: string;
  /** The ids of those that an operator has to look at, by when they were given up: sorted set. */
  readonly intentsGivenUp: string;
  /** Those of one payment or payout, and the lock on it: hash. */
  intentsOf(kind: string, externalId: string): string;
  /** One Idempotency-Key, by its digest: hash. */
  idempotency(digest: string): string;
  /** Which replica looks lost outcomes up: string. */
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

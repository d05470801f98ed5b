/**
 * Every key that the gateway keeps in Redis, in one place. The part in braces is the cluster's hash
 * tag: all keys of one merchant account share a slot, so that one script may touch several of them.
 */
export interface AccountKeys {
  /** Token bucket: hash. */
  readonly bucket: string;
  /** Random id of this incarnation of the account's log: string. */
  readonly epoch: string;
  /** All events of the account: stream. */
  readonly events: string;
  /** Events of one payment or payout: stream of references into `events`. */
  topic(kind: string, externalId: string): string;
  /** Last known states of one payment or payout: hash. */
  state(kind: string, externalId: string): string;
  /** A digest or an identity that was seen: string. */
  seen(digest: string): string;
  /** Callbacks that were not understood: hash. */
  readonly deadLetters: string;
}

export function accountKeys(prefix: string, account: string): AccountKeys {
  const base = `${prefix}:{${account}}`;
  return {
    bucket: `${base}:bucket`,
    epoch: `${base}:epoch`,
    events: `${base}:events`,
    topic: (kind, externalId) => `${base}:topic:${kind}:${externalId}`,
    state: (kind, externalId) => `${base}:state:${kind}:${externalId}`,
    seen: (digest) => `${base}:seen:${digest}`,
    deadLetters: `${base}:dead-letters`,
  };
}

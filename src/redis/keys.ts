import { boundedId } from "../model/bounded-id.ts";

/** The keys of one merchant account. */
export type AccountKeys = Readonly<ReturnType<typeof accountKeys>>;

/**
 * Every key that the gateway keeps in Redis, in one place. The part in braces is the cluster's hash
 * tag: all keys of one merchant account share a slot, so that one script may touch several of them.
 */
export function accountKeys(prefix: string, account: string) {
  const base = `${prefix}:{${account}}`;
  return {
    /** Token bucket: string, see take-tokens.lua. */
    bucket: `${base}:budget`,
    /** The state of the account's log, without its events: hash, see open-log.lua. */
    log: `${base}:log`,
    /** All events of the account: stream. */
    events: `${base}:events`,
    /** The places of one topic's events: sorted set. */
    topic: (name: string) => `${base}:topic:${boundedId(name)}`,
    /** A record: hash of its version, text, attachments and flags, see commit.lua. */
    record: (name: string) => `${base}:record:${boundedId(name)}`,
    /** The members of an index by their scores: sorted set. */
    index: (name: string) => `${base}:index:${name}`,
    /** Never written: see touch-log.lua. */
    probe: `${base}:probe`,
    /** Channel on which the place of the last stored event is published, to wake readers of `events`. */
    wakeUp: `${base}:wake-up`,
  };
}

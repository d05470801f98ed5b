import { createHash } from "node:crypto";

/**
 * Every key that the gateway keeps in Redis, in one place. The part in braces is the cluster's hash
 * tag: all keys of one merchant account share a slot, so that one script may touch several of them.
 */
export interface AccountKeys {
  /** Token bucket: string, see take-tokens.lua. */
  readonly bucket: string;
  /** The state of the account's log, without its events: hash, see open-log.lua. */
  readonly log: string;
  /** All events of the account: stream. */
  readonly events: string;
  /** The ids in `events` of one topic's events: sorted set. */
  topic(name: string): string;
  /** A record: hash of its version, text, attachments and flags, see commit.lua. */
  record(name: string): string;
  /** The members of an index by their scores: sorted set. */
  index(name: string): string;
  /** The holder of a lease: string. */
  lease(name: string): string;
  /** Callbacks that were not understood, by id: hash. */
  readonly deadLetters: string;
  /** The ids of dead letters in order of arrival: sorted set. */
  readonly deadLetterOrder: string;
  /** The total length of the bodies of dead letters: string. */
  readonly deadLetterSize: string;
  /** Channel on which the id of each stored event is published, to wake readers of `events`. */
  readonly wakeUp: string;
}

export function accountKeys(prefix: string, account: string): AccountKeys {
  const base = `${prefix}:{${account}}`;
  return {
    bucket: `${base}:bucket`,
    log: `${base}:log`,
    events: `${base}:events`,
    topic: (name) => `${base}:topic:${boundedId(name)}`,
    record: (name) => `${base}:record:${boundedId(name)}`,
    index: (name) => `${base}:index:${name}`,
    lease: (name) => `${base}:lease:${name}`,
    deadLetters: `${base}:dead-letters`,
    deadLetterOrder: `${base}:dead-letters:order`,
    deadLetterSize: `${base}:dead-letters:size`,
    wakeUp: `${base}:wake-up`,
  };
}

/** Longest id in a request by the proto's rules, in bytes. */
const maxIdBytes = 255;
const digestMark = "sha256:";

/**
 * An id for use in a key's name or in a state: the id itself, or its digest if it is longer than
 * the ids of requests, since ids in callbacks have any length. An id that looks like a digest is
 * digested too, so that no two ids become one.
 */
export function boundedId(id: string): string {
  if (Buffer.byteLength(id) <= maxIdBytes && !id.startsWith(digestMark)) return id;
  return `${digestMark}${createHash("sha256").update(id).digest("hex")}`;
}

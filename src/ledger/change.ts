import type { Event, EventSource } from "../gen/payments/v1/event_pb.ts";
import type { IndexChange, Version } from "../stores/kernel.ts";
import type { Ages, OpenCall, SettledBy } from "./intents.ts";
import type { Appended } from "./log.ts";

/**
 * A step on its way: the records that it decides on, and what it changes. Decisions change the
 * records in place and note the rest here. They do no I/O and have no clock: the store's clock, as
 * last received, is `nowMs`.
 */
export class Change {
  readonly token: string;
  readonly nowMs: number;
  readonly ages: Ages;
  readonly events: EventChange[] = [];
  readonly indexes: IndexChange[] = [];
  /** What became of each entry, and the outcomes of calls that it tells. */
  readonly written: Written[] = [];
  /** The calls that events ended. */
  readonly settled: { readonly call: OpenCall; readonly by?: SettledBy }[] = [];
  readonly drafts: readonly Draft[];
  /** `traceparent` of the span that takes the step: its events have it. */
  trace: string | undefined;
  /** The step turned out to change nothing: it refuses a call, or tells what became of it. */
  isRead = false;

  constructor(token: string, nowMs: number, drafts: readonly Draft[], ages: Ages) {
    this.token = token;
    this.nowMs = nowMs;
    this.ages = ages;
    this.drafts = drafts;
  }

  /** Appends an event. @returns its number in the step, and what stands for its place in a record */
  append(topic: string, event: Event, call?: string): { place: string; number: number } {
    const number = this.events.push({ topic, event, call }) - 1;
    return { place: `${this.token}:${number}`, number };
  }

  /** Stands for the store's clock, in milliseconds, in a record. */
  get now(): string {
    return `${this.token}:now`;
  }

  /** Stands for the commit's instant in a record, if an index has it as a score. */
  get instant(): string {
    return `${this.token}:instant`;
  }
}

interface Written extends Pick<Appended, "outcome" | "conflict"> {
  readonly source: EventSource;
}

export interface EventChange {
  readonly topic: string;
  readonly event: Event;
  /** The call whose outcome it tells, if it tells one. */
  readonly call: string | undefined;
}

/** A record as a process last saw or wrote it. */
export interface Supposed {
  readonly version: Version;
  /** Empty: there is none. */
  readonly text: string;
  readonly flags: ReadonlyMap<string, string>;
}

export const absent: Supposed = { version: "", text: "", flags: new Map() };

/** A record that a step may change. */
export class Draft {
  readonly key: string;
  /** What the step supposes of the record. */
  readonly was: Supposed;
  /** The record as parsed from its text; undefined if there is none. */
  value: unknown;
  isPinned = false;
  keepMs = 0;
  /** Bytes by name, or the number of the step's event whose bytes they are; undefined removes them. */
  readonly attachments = new Map<string, number | Uint8Array | undefined>();
  readonly flags = new Map<string, string>();
  /** The flags that the step has asked for, with the values that it got. */
  readonly expected = new Map<string, string>();

  constructor(key: string, value: unknown, was: Supposed = absent) {
    this.key = key;
    this.value = value;
    this.was = was;
  }

  /** The value of a flag; empty if it is not set. The step is decided anew if that is wrong. */
  flag(name: string): string {
    const value = this.was.flags.get(name) ?? "";
    this.expected.set(name, value);
    return value;
  }
}

import { getHeapStatistics } from "node:v8";
import { ByAge } from "../../collections/by-age.ts";
import { Deque } from "../../collections/deque.ts";
import { firstPlace, newEpoch, oldestPlace } from "../cursor.ts";
import {
  type Commit,
  type Committed,
  type Kernel,
  kernelOf,
  merged,
  type RangeOptions,
  type RecordChange,
  type Scored,
} from "../kernel.ts";
import { type Ask, LocalAccount } from "../local-account.ts";
import { type KeptEvent, type KeptRecord, StoredAccount } from "../stored-account.ts";

export interface MemoryKernelOptions {
  /** How long events are kept, in milliseconds. */
  readonly retentionMs: number;
  /** Most events, and most records, kept per account; the oldest are dropped first. */
  readonly maxEvents?: number;
  /**
   * About how many bytes all accounts may take together; each has an equal share, half of it for
   * records and half for events. Default: a third of the heap, at most 256 MiB.
   */
  readonly maxBytes?: number;
  /** Wall clock in milliseconds. Default: `Date.now`. */
  readonly now?: () => number;
}

/** A store in this process's memory: what it holds is lost when the process ends. */
export function createMemoryKernel(options: MemoryKernelOptions): Kernel {
  const { maxBytes = Math.min(defaultMaxBytes, getHeapStatistics().heap_size_limit / 3) } = options;
  let accounts = 0;
  return kernelOf(false, () => {
    accounts++;
    const account = new MemoryAccount(options, () => maxBytes / accounts / 2);
    const ask: Ask = async (operation, args, hear) => {
      account.sweep(args[0]);
      const result = Reflect.apply(account[operation], account, args);
      hear?.(result);
      return result;
    };
    return new LocalAccount(ask, options.now);
  });
}

/**
 * A record in the fewest objects: most of the memory is its text and bytes. Bytes are kept as texts of
 * as many characters (latin1): a buffer of its own takes more beside an event's bytes than they are.
 */
interface Kept extends KeptRecord {
  /** Names and bytes in turn. */
  readonly attachments: readonly string[];
  /** Names and values in turn. */
  readonly flags: readonly string[];
  /** About how many bytes it takes. */
  readonly bytes: number;
}

interface Entry {
  readonly place: string;
  /** Its bytes. */
  readonly text: string;
  readonly topic: string;
}

class MemoryAccount extends StoredAccount {
  readonly epoch = newEpoch();
  tail = firstPlace;
  instant = 0;
  readonly #options: MemoryKernelOptions;
  /** Most bytes of records, and most of events. */
  readonly #maxBytes: () => number;
  /** By when they were last changed; those that are too many are dropped from the oldest on. */
  readonly #records = new ByAge<Kept>();
  /** Those that are not dropped early, in the order in which the sweep looks at them. */
  readonly #pinned = new ByAge<Kept>();
  readonly #events = new Deque<Entry>();
  /** The same of each topic. */
  readonly #topics = new Map<string, Deque<Entry>>();
  readonly #indexes = new Map<string, Map<string, number>>();
  #floor = firstPlace;
  #recordBytes = 0;
  #eventBytes = 0;
  /** The texts of the commit that is made: an event's bytes may be attached to records, too. */
  readonly #texts = new Map<Uint8Array, string>();

  constructor(options: MemoryKernelOptions, maxBytes: () => number) {
    super();
    this.#options = options;
    this.#maxBytes = maxBytes;
  }

  override commit(nowMs: number, commit: Commit): Committed {
    this.#texts.clear();
    return super.commit(nowMs, commit);
  }

  /** Removes what is past its time, and what is too much. */
  sweep(nowMs: number): void {
    const { retentionMs, maxEvents = defaultMaxEvents } = this.#options;
    const maxBytes = this.#maxBytes();
    const oldestKept = oldestPlace(nowMs, retentionMs);
    for (let oldest = this.#events.at(0); oldest; oldest = this.#events.at(0)) {
      const tooMany = this.#events.length > maxEvents || this.#eventBytes > maxBytes;
      if (oldest.place >= oldestKept && !tooMany) break;
      this.#dropOldest(oldest);
    }
    let looked = 0;
    this.#records.fromOldest((key, { untilMs }) => {
      const tooMany = this.#records.size > maxEvents || this.#recordBytes > maxBytes;
      if (tooMany || untilMs < nowMs) this.forget(key);
      else looked++;
      return looked < sweepAhead;
    });
    // One at a time, in turn: some are kept for a day, some for ever.
    const next = this.#pinned.oldest ?? "";
    const pinned = this.#pinned.get(next);
    if (pinned && pinned.untilMs < nowMs) this.forget(next);
    else if (pinned) this.#pinned.set(next, pinned);
  }

  #dropOldest(oldest: Entry): void {
    this.#events.shift();
    this.#eventBytes -= eventBytes(oldest);
    this.#floor = oldest.place;
    const ofTopic = this.#topics.get(oldest.topic);
    ofTopic?.shift();
    if (ofTopic?.length === 0) this.#topics.delete(oldest.topic);
  }

  protected floor(): string {
    return this.#floor;
  }

  protected record(key: string): Kept | undefined {
    return this.#records.get(key) ?? this.#pinned.get(key);
  }

  protected attachments(key: string): Map<string, Uint8Array> {
    const list = this.record(key)?.attachments ?? none;
    const attachments = new Map<string, Uint8Array>();
    for (let at = 0; at < list.length; at += 2) {
      attachments.set(list[at] ?? "", bytesOf(list[at + 1] ?? ""));
    }
    return attachments;
  }

  protected flag(key: string, name: string): string {
    const flags = this.record(key)?.flags ?? none;
    return flags[placeOfPart(flags, name) + 1] ?? "";
  }

  protected change(change: RecordChange, version: string, text: string, untilMs: number): void {
    const { key, isPinned = false } = change;
    const before = this.record(key);
    let { attachments, flags } = before ?? { attachments: none, flags: none };
    for (const [name, bytes] of change.attachments) {
      attachments = withPart(attachments, name, bytes && this.#textOf(bytes));
    }
    for (const [name, value] of change.flags) flags = withPart(flags, name, value);
    // One that is never dropped takes no room from the others.
    const bytes = isPinned ? 0 : recordBytes(key, text, attachments, flags);
    this.#recordBytes += bytes - (before?.bytes ?? 0);
    const [list, other] = isPinned ? [this.#pinned, this.#records] : [this.#records, this.#pinned];
    if (before) other.delete(key);
    list.set(key, { version, text, attachments, flags, untilMs, bytes });
  }

  protected forget(key: string): void {
    const kept = this.record(key);
    if (!kept) return;
    if (!this.#records.delete(key)) this.#pinned.delete(key);
    this.#recordBytes -= kept.bytes;
    for (const members of this.#indexes.values()) members.delete(key);
  }

  protected add(place: string, topic: string, bytes: Uint8Array): void {
    const event = { place, text: this.#textOf(bytes), topic };
    const ofTopic = this.#topics.get(topic) ?? new Deque();
    this.#topics.set(topic, ofTopic);
    for (const events of [this.#events, ofTopic]) events.push(event);
    this.#eventBytes += eventBytes(event);
  }

  protected moveEnd(tail: string, instant: number): void {
    this.tail = tail;
    this.instant = instant;
  }

  protected events(
    topic: string | undefined,
    after: string,
    before: string,
    limit: number,
    newest: boolean,
  ): KeptEvent[] {
    const events = topic === undefined ? this.#events : (this.#topics.get(topic) ?? new Deque());
    const from = events.findFirst(({ place }) => place > after);
    const to = events.findFirst(({ place }) => place >= before);
    const found = newest
      ? events.slice(Math.max(from, to - limit), to).reverse()
      : events.slice(from, Math.min(from + limit, to));
    return found.map(({ place, text }) => ({ place, bytes: bytesOf(text) }));
  }

  protected setScore(index: string, member: string, score: number | undefined): void {
    const members = this.#indexes.get(index) ?? new Map<string, number>();
    this.#indexes.set(index, members);
    if (score === undefined) members.delete(member);
    else members.set(member, score);
  }

  protected members(index: string, options: RangeOptions): Scored[] {
    let { min = -Infinity, max = Infinity } = options;
    let found: Scored[] = [];
    for (const [member, score] of this.#indexes.get(index) ?? []) {
      if (score < min || score > max) continue;
      // To sort all members of a long index would keep other work waiting: few at a time, and what
      // comes behind the last of them is passed over.
      if (found.push({ member, score }) <= 2 * options.limit) continue;
      found = merged(found, options);
      const last = found.at(-1)?.score ?? score;
      if (options.newestFirst) min = last;
      else max = last;
    }
    return found;
  }

  #textOf(bytes: Uint8Array): string {
    let text = this.#texts.get(bytes);
    if (text === undefined) {
      text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
      this.#texts.set(bytes, text);
    }
    return text;
  }
}

const defaultMaxEvents = 100_000;
const defaultMaxBytes = 256 * 1024 * 1024;
/** Records are not quite in the order of their expiry: how many that stay are passed over. */
const sweepAhead = 8;
const none: readonly never[] = [];

/** What a record takes beside its texts, one of its flags, and an event: as measured, in bytes. */
const bytesOfRecord = 450;
const bytesOfFlag = 16;
const bytesOfEvent = 230;

function recordBytes(
  key: string,
  text: string,
  attachments: readonly string[],
  flags: readonly string[],
): number {
  let bytes = bytesOfRecord + key.length + text.length;
  for (const part of attachments) bytes += part.length;
  for (const flag of flags) bytes += bytesOfFlag + flag.length;
  return bytes;
}

function eventBytes({ text }: Entry): number {
  return bytesOfEvent + text.length;
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}

/** Where a name is among names and values in turn; with none of that name, behind the last one. */
function placeOfPart(parts: readonly string[], name: string): number {
  let at = 0;
  while (at < parts.length && parts[at] !== name) at += 2;
  return at;
}

function withPart(
  parts: readonly string[],
  name: string,
  value: string | undefined,
): readonly string[] {
  const at = placeOfPart(parts, name);
  const others = at < parts.length ? parts.toSpliced(at, 2) : parts;
  return value === undefined ? others : others.concat([name, value]);
}

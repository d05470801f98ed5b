import { getHeapStatistics } from "node:v8";
import { ByAge } from "../../collections/by-age.ts";
import { Deque } from "../../collections/deque.ts";
import type { Cursor } from "../cursor.ts";
import {
  assertOf,
  type Bounds,
  cursorOf,
  decodeCursor,
  firstPlace,
  newEpoch,
  nextPlace,
  placeIn,
} from "../cursor.ts";
import {
  type AccountKernel,
  Accounts,
  type Commit,
  type Committed,
  filledIn,
  type IndexChange,
  instantOf,
  type Kernel,
  merged,
  type RangeOptions,
  type Read,
  type RecordChange,
  type Row,
  type RowPage,
  type Scored,
  type StoredRecord,
} from "../kernel.ts";
import { LocalAccount } from "../local-account.ts";

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
  const halfOfShare = () => maxBytes / accounts.size / 2;
  const accounts: Accounts<MemoryAccount> = new Accounts({
    ...{ durable: false, open: () => new MemoryAccount(options, halfOfShare) },
  });
  return accounts;
}

/**
 * A record in the fewest objects: most of the memory is its text and bytes. Bytes are kept as texts of
 * as many characters (latin1): a buffer of its own takes more beside an event's bytes than they are.
 */
interface Kept {
  version: string;
  text: string;
  /** Names and bytes in turn. */
  attachments: readonly string[];
  /** Names and values in turn. */
  flags: readonly string[];
  untilMs: number;
  /** About how many bytes it takes. */
  bytes: number;
}

interface KeptEvent {
  readonly cursor: Cursor;
  /** Its bytes. */
  readonly text: string;
  readonly topic: string;
  /** The next one of its topic; after the newest comes the oldest. */
  next: KeptEvent;
}

class MemoryAccount extends LocalAccount implements AccountKernel {
  readonly #options: MemoryKernelOptions;
  readonly #epoch = newEpoch();
  /** By when they were last changed; those that are too many are dropped from the oldest on. */
  readonly #records = new ByAge<Kept>();
  /** Those that are not dropped early, in the order in which the sweep looks at them. */
  readonly #pinned = new ByAge<Kept>();
  readonly #events = new Deque<KeptEvent>();
  /** The newest event of each topic. */
  readonly #topics = new Map<string, KeptEvent>();
  readonly #indexes = new Map<string, Map<string, number>>();
  #place = firstPlace;
  #instant = 0;
  #floor = cursorOf(firstPlace, this.#epoch);
  #tail = this.#floor;
  /** Most bytes of records, and most of events. */
  readonly #maxBytes: () => number;
  #recordBytes = 0;
  #eventBytes = 0;

  constructor(options: MemoryKernelOptions, maxBytes: () => number) {
    super(options.now);
    this.#options = options;
    this.#maxBytes = maxBytes;
  }

  async read(keys: readonly string[]): Promise<Read> {
    const nowMs = this.nowMs();
    this.#sweep(nowMs);
    return { records: keys.map((key) => this.#recordOf(key, nowMs)), bounds: this.#bounds() };
  }

  async commit(commit: Commit): Promise<Committed> {
    const nowMs = this.nowMs();
    this.#sweep(nowMs);
    if (!commit.records.every((change) => this.#isAsSupposed(change, nowMs))) {
      const records = commit.records.map(({ key, expected }) => {
        const kept = this.#kept(key, nowMs);
        const flags = new Map([...expected.keys()].map((name) => [name, flagOf(kept, name)]));
        return { key, version: kept?.version ?? "", text: kept?.text ?? "", flags };
      });
      return { kind: "conflict", nowMs, records };
    }
    const bytesAsText = new Map(commit.events.map(({ bytes }) => [bytes, textOf(bytes)]));
    const cursors = commit.events.map(({ topic, bytes }) =>
      this.#store(topic, bytesAsText.get(bytes) ?? "", nowMs),
    );
    const places = cursors.map(placeIn);
    const instant = instantOf(commit, nowMs, this.#instant);
    this.#instant = instant ?? this.#instant;
    const texts = commit.records.map((change) => {
      const { text } = change;
      const filled = text && filledIn(text, commit.token, places, nowMs, instant);
      if (filled !== undefined) this.#change(change, commit.token, filled, nowMs, bytesAsText);
      return filled;
    });
    for (const change of commit.indexes) {
      this.#index(change, change.score === "instant" ? this.#instant : change.score);
    }
    this.#trim(nowMs);
    this.publish(commit.events, cursors);
    return { kind: "committed", nowMs, cursors, instant, texts };
  }

  async page(
    topic: string | undefined,
    after: Cursor | undefined,
    limit: number,
  ): Promise<RowPage> {
    this.#sweep(this.nowMs());
    const events = this.#eventsOf(topic);
    const isLater = ({ cursor }: KeptEvent) => after === undefined || cursor > after;
    const from = events.findFirst(isLater);
    const found = events.slice(from, from + limit + 1);
    const rows = found.slice(0, limit).map(rowOf);
    const upTo = (found.length > limit && rows.at(-1)?.cursor) || this.#tail;
    return { rows, upTo, bounds: this.#bounds() };
  }

  async newest(topic: string | undefined, limit: number, before?: Cursor): Promise<readonly Row[]> {
    this.#sweep(this.nowMs());
    if (before !== undefined) assertOf(before, this.#epoch);
    const events = this.#eventsOf(topic);
    const end = events.findFirst(({ cursor }) => before !== undefined && cursor >= before);
    return events.slice(end - Math.max(limit, 0), end).map(rowOf);
  }

  async range(indexes: readonly string[], options: RangeOptions): Promise<Scored[]> {
    let { min = -Infinity, max = Infinity } = options;
    this.#sweep(this.nowMs());
    let found: Scored[] = [];
    for (const index of indexes) {
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
    }
    return merged(found, options);
  }

  async count(index: string): Promise<number> {
    return this.#indexes.get(index)?.size ?? 0;
  }

  async drop(index: string, members: readonly string[]): Promise<void> {
    for (const member of members) this.#indexes.get(index)?.delete(member);
  }

  /** A record that is not past its time: the sweep may not have come to it yet. */
  #kept(key: string, nowMs: number): Kept | undefined {
    const kept = this.#records.get(key) ?? this.#pinned.get(key);
    return kept && kept.untilMs >= nowMs ? kept : undefined;
  }

  #recordOf(key: string, nowMs: number): StoredRecord {
    const kept = this.#kept(key, nowMs);
    const attachments = new Map<string, Uint8Array>();
    const list = kept?.attachments ?? [];
    for (let at = 0; at < list.length; at += 2) {
      attachments.set(list[at] ?? "", bytesOf(list[at + 1] ?? ""));
    }
    return { key, version: kept?.version ?? "", text: kept?.text ?? "", attachments };
  }

  #isAsSupposed({ key, was, expected }: RecordChange, nowMs: number): boolean {
    const kept = this.#kept(key, nowMs);
    if ((kept?.version ?? "") !== was) return false;
    for (const [name, value] of expected) if (flagOf(kept, name) !== value) return false;
    return true;
  }

  #change(
    change: RecordChange,
    token: string,
    text: string,
    nowMs: number,
    bytesAsText: ReadonlyMap<Uint8Array, string>,
  ): void {
    const { key, keepMs, isPinned = false } = change;
    const before = this.#kept(key, nowMs);
    if (!before || text === "") this.#forget(key);
    if (text === "") return;
    let attachments = before?.attachments ?? none;
    for (const [name, bytes] of change.attachments) {
      const part = bytes && (bytesAsText.get(bytes) ?? textOf(bytes));
      attachments = withPart(attachments, name, part);
    }
    let flags = before?.flags ?? none;
    for (const [name, value] of change.flags) flags = withPart(flags, name, value);
    // One that is never dropped takes no room from the others.
    const bytes = isPinned ? 0 : recordBytes(key, text, attachments, flags);
    this.#recordBytes += bytes - (before?.bytes ?? 0);
    const untilMs = nowMs + keepMs;
    const [list, other] = isPinned ? [this.#pinned, this.#records] : [this.#records, this.#pinned];
    if (before) other.delete(key);
    list.set(key, { version: token, text, attachments, flags, untilMs, bytes });
  }

  /** Removes a record with its members of indexes. */
  #forget(key: string): void {
    const list = this.#records.get(key) ? this.#records : this.#pinned;
    const kept = list.get(key);
    if (!kept) return;
    list.delete(key);
    this.#recordBytes -= kept.bytes;
    for (const members of this.#indexes.values()) members.delete(key);
  }

  #index({ index, member }: IndexChange, score: number | undefined): void {
    const members = this.#indexes.get(index) ?? new Map<string, number>();
    this.#indexes.set(index, members);
    if (score === undefined) members.delete(member);
    else members.set(member, score);
  }

  #store(topic: string, text: string, nowMs: number): Cursor {
    this.#place = nextPlace(this.#place, nowMs);
    const cursor = cursorOf(this.#place, this.#epoch);
    this.#tail = cursor;
    const event = { cursor, text, topic } as KeptEvent;
    const before = this.#topics.get(topic);
    event.next = before?.next ?? event;
    if (before) before.next = event;
    this.#topics.set(topic, event);
    this.#events.push(event);
    this.#eventBytes += eventBytes(event);
    return cursor;
  }

  /** The events of a topic or of all, the oldest first. */
  #eventsOf(topic: string | undefined): Deque<KeptEvent> {
    if (topic === undefined) return this.#events;
    const newest = this.#topics.get(topic);
    const all = new Deque<KeptEvent>();
    for (let event = newest?.next; event; event = event === newest ? undefined : event.next) {
      all.push(event);
    }
    return all;
  }

  #bounds(): Bounds {
    return { epoch: this.#epoch, floor: this.#floor, tail: this.#tail };
  }

  /** Removes what is past its time, and the records that are too many. */
  #sweep(nowMs: number): void {
    this.#trim(nowMs);
    const { maxEvents = defaultMaxEvents } = this.#options;
    const maxBytes = this.#maxBytes();
    let looked = 0;
    this.#records.fromOldest((key, { untilMs }) => {
      const tooMany = this.#records.size > maxEvents || this.#recordBytes > maxBytes;
      if (tooMany || untilMs < nowMs) this.#forget(key);
      else looked++;
      return looked < sweepAhead;
    });
    // One at a time, in turn: some are kept for a day, some for ever.
    const next = this.#pinned.oldest ?? "";
    const pinned = this.#pinned.get(next);
    if (pinned && pinned.untilMs < nowMs) this.#forget(next);
    else if (pinned) this.#pinned.set(next, pinned);
  }

  #trim(nowMs: number): void {
    const { retentionMs, maxEvents = defaultMaxEvents } = this.#options;
    const maxBytes = this.#maxBytes();
    for (;;) {
      const oldest = this.#events.at(0);
      if (!oldest) return;
      const tooMany = this.#events.length > maxEvents || this.#eventBytes > maxBytes;
      if (decodeCursor(oldest.cursor).ms >= nowMs - retentionMs && !tooMany) return;
      this.#events.shift();
      this.#eventBytes -= eventBytes(oldest);
      this.#floor = oldest.cursor;
      const newest = this.#topics.get(oldest.topic);
      if (newest === oldest) this.#topics.delete(oldest.topic);
      else if (newest) newest.next = oldest.next;
    }
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

function eventBytes({ text }: KeptEvent): number {
  return bytesOfEvent + text.length;
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}

function rowOf({ cursor, text }: KeptEvent): Row {
  return { cursor, bytes: bytesOf(text) };
}

function flagOf(kept: Kept | undefined, name: string): string {
  return kept ? (kept.flags[placeOfPart(kept.flags, name) + 1] ?? "") : "";
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

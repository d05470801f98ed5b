import { type Bounds, type Cursor, cursorOf, nextPlace, placeIn } from "./cursor.ts";
import {
  type Commit,
  type Committed,
  type Found,
  filledIn,
  merged,
  type RangeOptions,
  type Read,
  type RecordChange,
  type Row,
  type RowPage,
  type Scored,
  type StoredRecord,
} from "./kernel.ts";

/** A record that is kept until a time, in milliseconds since the epoch. */
export interface KeptRecord extends Pick<StoredRecord, "version" | "text"> {
  readonly untilMs: number;
}

export interface KeptEvent extends Pick<Row, "bytes"> {
  readonly place: string;
}

/**
 * One account's records, log and indexes in a store that no other process uses. What the kernel
 * promises of them is here; how they are kept is up to the subclass. The operations of the kernel are
 * given the clock.
 */
export abstract class StoredAccount {
  /** See `Bounds`. */
  abstract readonly epoch: string;
  /** Place of the last event ever appended. */
  abstract readonly tail: string;
  /** The latest instant of a commit; see IndexChange. */
  abstract readonly instant: number;

  read(nowMs: number, keys: readonly string[]): Read {
    const records = keys.map((key) => {
      const kept = this.record(key);
      // The sweep may not have come to it yet.
      if (!kept || kept.untilMs < nowMs) return { key, ...absent };
      const { version, text } = kept;
      return { key, version, text, attachments: this.attachments(key) };
    });
    return { records, bounds: this.#bounds(nowMs) };
  }

  commit(nowMs: number, commit: Commit): Committed {
    const { token, records, events, indexes } = commit;
    const now = records.map((change) => this.#found(change, nowMs));
    if (!records.every((change, n) => isAsSupposed(change, now[n] as Found))) {
      return { kind: "conflict", nowMs, records: now };
    }
    let { tail } = this;
    const places = events.map(({ topic, bytes }) => {
      tail = nextPlace(tail, nowMs);
      this.add(tail, topic, bytes);
      return tail;
    });
    const asksForInstant = indexes.some(({ score }) => score === "instant");
    const instant = asksForInstant
      ? Math.max(Math.floor(nowMs * 1_000), this.instant + 1)
      : undefined;
    if (places.length > 0 || instant !== undefined) this.moveEnd(tail, instant ?? this.instant);
    const texts = records.map((change) => {
      const text = change.text && filledIn(change.text, token, places, nowMs, instant);
      if (text === "") this.forget(change.key);
      else if (text !== undefined) this.change(change, token, text, nowMs + change.keepMs);
      return text;
    });
    for (const { index, member, score } of indexes) {
      this.setScore(index, member, score === "instant" ? instant : score);
    }
    const cursors = places.map((place) => cursorOf(place, this.epoch));
    return { kind: "committed", nowMs, cursors, instant, texts };
  }

  page(
    nowMs: number,
    topic: string | undefined,
    at: Cursor | undefined,
    limit: number,
    newest = false,
  ): RowPage {
    const bounds = this.#bounds(nowMs);
    const { floor, tail } = bounds;
    const after = newest || at === undefined || at < floor ? floor : at;
    const before = newest && at !== undefined ? placeIn(at) : behindAll;
    const found = this.events(topic, placeIn(after), before, limit + 1, newest);
    const rows = found
      .slice(0, limit)
      .map(({ place, bytes }) => ({ cursor: cursorOf(place, this.epoch), bytes }));
    const upTo = (found.length > limit && rows.at(-1)?.cursor) || tail;
    return { rows: newest ? rows.reverse() : rows, upTo, bounds };
  }

  range(_: number, indexes: readonly string[], options: RangeOptions): Scored[] {
    return merged(
      indexes.flatMap((index) => this.members(index, options)),
      options,
    );
  }

  /** Place of the last event that is no longer kept. */
  protected abstract floor(nowMs: number): string;
  protected abstract record(key: string): KeptRecord | undefined;
  protected abstract attachments(key: string): Map<string, Uint8Array>;
  protected abstract flag(key: string, name: string): string;
  /** Sets the text of a record, and what is to be kept with it. */
  protected abstract change(
    change: RecordChange,
    version: string,
    text: string,
    untilMs: number,
  ): void;
  /** Removes a record with its members of indexes. */
  protected abstract forget(key: string): void;
  /** Appends an event. */
  protected abstract add(place: string, topic: string, bytes: Uint8Array): void;
  /** Sets `tail` and `instant`. */
  protected abstract moveEnd(tail: string, instant: number): void;
  /** The first `limit` events between two places, or the last ones, the newest first. */
  protected abstract events(
    topic: string | undefined,
    after: string,
    before: string,
    limit: number,
    newest: boolean,
  ): KeptEvent[];
  /** Undefined removes the member. */
  protected abstract setScore(index: string, member: string, score: number | undefined): void;
  /** At least the members of an index that `range` is about. */
  protected abstract members(index: string, options: RangeOptions): Scored[];

  #bounds(nowMs: number): Bounds {
    const { epoch, tail } = this;
    return { epoch, floor: cursorOf(this.floor(nowMs), epoch), tail: cursorOf(tail, epoch) };
  }

  /** What there is of a record. One that is past its time is deleted, since a new one may follow. */
  #found({ key, expected }: RecordChange, nowMs: number): Found {
    let kept = this.record(key);
    if (kept && kept.untilMs < nowMs) {
      this.forget(key);
      kept = undefined;
    }
    const flags = new Map<string, string>();
    for (const name of expected.keys()) flags.set(name, kept ? this.flag(key, name) : "");
    return { key, version: kept?.version ?? "", text: kept?.text ?? "", flags };
  }
}

const absent = { version: "", text: "", attachments: new Map<string, Uint8Array>() };

/** Sorts after every place, since places are hex digits. */
const behindAll = "~";

function isAsSupposed({ was, expected }: RecordChange, now: Found): boolean {
  if (now.version !== was) return false;
  for (const [name, value] of expected) if (now.flags.get(name) !== value) return false;
  return true;
}

import { ask, storeAway } from "../../redis/ask.ts";
import type { RedisConnector } from "../../redis/connect.ts";
import { type AccountKeys, accountKeys } from "../../redis/keys.ts";
import { loadScript, type Script } from "../../redis/script.ts";
import type { MinReplicas, Writer } from "../../redis/writer.ts";
import type { Cursor } from "../cursor.ts";
import {
  assertOf,
  assertReadable,
  type Bounds,
  cursorExpired,
  cursorOf,
  decodeCursor,
} from "../cursor.ts";
import {
  type AccountKernel,
  type Commit,
  type Committed,
  type Found,
  filledIn,
  type IndexChange,
  type Listener,
  merged,
  type RangeOptions,
  type Read,
  type RecordChange,
  type Scored,
  type StoredRecord,
} from "../kernel.ts";
import { type FeedState, RedisFeed, type StoredPage } from "./feed.ts";
import type { WakeUps } from "./wake-ups.ts";

export interface RedisKernelOptions {
  /** Stays open when the store is closed. */
  readonly redis: RedisConnector;
  /** Prefix of all keys. */
  readonly prefix: string;
  /** How long events are kept, in milliseconds. */
  readonly retentionMs: number;
  /**
   * Indexes whose members are keys of records, and whose scores are instants. Redis does not remove
   * such a member when its record expires, so this process does, from time to time.
   */
  readonly ofRecords: {
    readonly indexes: readonly string[];
    /** A record is kept at least so long after its instant, in milliseconds. */
    readonly keepMs: number;
  };
  /**
   * Replicas of Redis that must hold a commit before it is acknowledged. Default: 0. If there are any,
   * its events are not shown earlier either.
   */
  readonly minReplicas?: MinReplicas;
  /** The live delivery of an account's events changed its state. */
  readonly onFeed?: (account: string, state: FeedState, error?: unknown) => void;
}

/** What all accounts of a process have together. */
interface Shared {
  readonly write: Writer;
  /** Answers nothing from a server that may have been replaced. */
  readonly confirm: Writer;
  readonly wakeUps: WakeUps;
}

/** How often records are read again if an event that they rest on may not be shown yet. */
const maxTries = 5;

/** The first event of a millisecond gets a random `seq` below this; see commit.lua. */
const firstSeqs = 0x1_0000;

/** How many members of an index one script looks at, so that it does not block others. */
const dropsAtOnce = 200;

/** No answer takes this long: a clock was set, in milliseconds. */
const clockSetMs = 5_000;

/** One account's records, log and indexes in Redis. Each operation on them is one atomic step. */
export class RedisAccount implements AccountKernel {
  readonly #name: string;
  readonly #options: RedisKernelOptions;
  readonly #keys: AccountKeys;
  readonly #shared: Shared;
  #aheadMs = -Infinity;
  #feed: RedisFeed | undefined;
  readonly #settling = new Rounds();
  readonly #showing = new Rounds();
  /** The last event that the next round lets readers see. */
  #toShow: { readonly epoch: string; readonly place: string } | undefined;

  constructor(name: string, options: RedisKernelOptions, shared: Shared) {
    this.#name = name;
    this.#options = options;
    this.#keys = accountKeys(options.prefix, name);
    this.#shared = shared;
  }

  nowMs(): number {
    // By the clock that nobody sets: by a machine's that is set, leases would be over too early.
    return this.hasClock ? Math.floor(performance.now() + this.#aheadMs) : Date.now();
  }

  get hasClock(): boolean {
    return Number.isFinite(this.#aheadMs);
  }

  async read(keys: readonly string[], { shown = false } = {}): Promise<Read> {
    for (let tries = 0; ; tries++) {
      const { read, isShown } = await this.#readRecords(keys);
      if (isShown || !shown) return read;
      if (tries === maxTries) throw storeAway(new Error("events come faster than they are shown"));
      // Replicas do not hold this state yet, so a failover may lose it. Read it again after
      // `settle`: a server that was promoted meanwhile has settled its own data, which may differ.
      await this.#settle();
    }
  }

  async #readRecords(names: readonly string[]): Promise<{ read: Read; isShown: boolean }> {
    const keys = this.#keys;
    const on = [keys.log, keys.events, ...names.map((name) => keys.record(name))];
    const answer = await this.#ask("runBuffer", scripts.readRecords, on, []);
    const [now, epoch, floor, watermark, ...records] = answer as [
      ...[Buffer, Buffer, Buffer, Buffer],
      ...Buffer[][],
    ];
    this.#hearClock(Number(`${now}`));
    const cursor = (place: Buffer) => cursorOf(`${place}`, `${epoch}`);
    const bounds: Bounds = { epoch: `${epoch}`, floor: cursor(floor), tail: cursor(watermark) };
    let isShown = true;
    const found = records.map((fields, at): StoredRecord => {
      const record = { key: names[at] ?? "", version: "", text: "" };
      const attachments = new Map<string, Uint8Array>();
      let known = "";
      for (const [name, value] of pairs(fields)) {
        const field = `${name}`;
        if (field === "v") record.version = `${value}`;
        else if (field === "t") record.text = `${value}`;
        else if (field === "p") known = `${value}`;
        else if (field === "l") isShown &&= cursor(value) <= bounds.tail;
        else if (field.startsWith("a:")) attachments.set(field.slice(2), value);
      }
      const text = textOf(record.text, record.version, known);
      return { ...record, text, attachments };
    });
    return { read: { records: found, bounds }, isShown };
  }

  async commit(commit: Commit): Promise<Committed> {
    const keys = this.#keys;
    const { minReplicas = 0, retentionMs } = this.#options;
    const awaits = minReplicas !== 0;
    const { records, events, indexes } = commit;
    const on = [keys.log, keys.events];
    for (const { key } of records) on.push(keys.record(key));
    for (const { topic } of events) on.push(keys.topic(topic));
    for (const { index } of indexes) on.push(keys.index(index));
    const args: (string | Buffer)[] = [""];
    for (const { bytes } of events) args.push(bufferOf(bytes));
    args[0] = JSON.stringify({
      seq: Math.floor(Math.random() * firstSeqs),
      events: events.length,
      channel: keys.wakeUp,
      awaits,
      retentionMs,
      hasInstant: indexes.some(({ score }) => score === "instant"),
      records: records.map((record) => givenOf(record, commit.token, args)),
      indexes: scoresOf(indexes),
    });
    const { answer, missing } = await this.#shared.write(scripts.commit, on, args);
    const [kind, now, ...rest] = answer as [Committed["kind"], string, ...unknown[]];
    this.#hearClock(Number(now));
    const nowMs = Number(now);
    if (kind === "conflict") return { kind, nowMs, records: foundIn(records, rest) };
    // Nothing rests on it while too few replicas hold it: a replaced primary would answer the same.
    if (missing && !commit.isRead) throw storeAway(missing);
    const [epoch, instant, ...places] = rest as string[];
    const last = places.at(-1);
    // The events are safely stored. If the watermark cannot be moved now, a reader moves it later.
    if (awaits && epoch && last) await this.#show(epoch, last).catch(() => {});
    const cursors = places.map((place) => cursorOf(place, epoch ?? ""));
    return { kind, nowMs, cursors, instant: instant ? Number(instant) : undefined };
  }

  /**
   * @param shown all events up to here may be shown to a reader in this process
   * @throws GatewayError OUT_OF_RANGE when the cursor cannot be resumed from
   */
  async page(
    topic: string | undefined,
    at: Cursor | undefined,
    limit: number,
    newest = false,
    shown = this.#feed?.place,
  ): Promise<StoredPage> {
    const { log, events, topic: keyOf } = this.#keys;
    const on = topic === undefined ? [log, events] : [log, events, keyOf(topic)];
    const { place: delivered, epoch } = shown ? decodeCursor(shown) : nowhere;
    const { place } = at === undefined ? nowhere : decodeCursor(at);
    const args = (most: number) => [place, `${most}`, delivered, epoch, newest ? "1" : "0"];
    const answer = await this.#ask("runBuffer", scripts.readEvents, on, args(limit));
    try {
      return pageIn(answer, at, newest);
    } catch (error) {
      // This error is final for a client, so an old primary, or one that started empty, must not
      // cause it: a server has to say the same whose answer counts as a write does.
      const { confirm } = this.#shared;
      pageIn(await this.#held(scripts.readEvents, on, args(0), confirm), at, newest);
      throw storeAway(new Error(`the servers of Redis differ: ${error}`));
    }
  }

  async watch(listener: Listener): Promise<() => void> {
    const feed = new RedisFeed({
      // The feed itself says what was delivered, so it reads no further than what may be shown.
      read: (after, limit) => this.page(undefined, after, limit, false, ""),
      settle: () => this.#settle(),
      onState: (state, error) => this.#options.onFeed?.(this.#name, state, error),
      ...{ wakeUps: this.#shared.wakeUps, channel: this.#keys.wakeUp, listener },
    });
    this.#feed = feed;
    await feed.start();
    return () => feed.end();
  }

  async range(indexes: readonly string[], options: RangeOptions): Promise<Scored[]> {
    const { min = -Infinity, max = Infinity, limit, newestFirst } = options;
    const on = indexes.map(this.#keys.index);
    const [from, to, ...order] = newestFirst ? [max, min, "REV"] : [min, max];
    const args = [`${from}`, `${to}`, "BYSCORE", ...order, "LIMIT", "0", `${limit}`, "WITHSCORES"];
    const found = pairs((await this.#ask("run", scripts.readIndexes, on, args)) as string[]);
    return merged(
      found.map(([member, score]) => ({ member, score: Number(score) })),
      options,
    );
  }

  /**
   * Removes the members of indexes whose record has expired, which Redis does not do by itself.
   * @param until the highest score that may be of such a record
   */
  async dropExpired(indexes: readonly string[], until: number): Promise<void> {
    const keys = this.#keys;
    for (let min = 0; ; ) {
      const found = await this.range(indexes, { min, max: until, limit: dropsAtOnce });
      const last = found.at(-1);
      if (!last) return;
      const members = found.map(({ member }) => member);
      const on = [...indexes.map(keys.index), ...members.map(keys.record)];
      const args = [`${indexes.length}`, ...members];
      await this.#ask("run", scripts.dropExpired, on, args);
      min = last.score + 1;
    }
  }

  /** @throws GatewayError UNAVAILABLE unless a commit would count now, held by enough servers too */
  async probe(): Promise<void> {
    const { log, events, probe } = this.#keys;
    const on = [log, events, probe];
    await this.#held(scripts.touchLog, on, []);
  }

  end(error: Error): void {
    this.#feed?.fail(error);
  }

  /**
   * Waits until replicas hold all that is stored, then lets it be shown.
   * @throws GatewayError UNAVAILABLE when they do not
   */
  #settle(): Promise<void> {
    return this.#settling.next(async () => {
      const on = [this.#keys.log, this.#keys.events];
      const answer = await this.#held(scripts.touchLog, on, []);
      await this.#show(...(answer as [epoch: string, place: string]));
    });
  }

  /** Moves the watermark. */
  #show(epoch: string, place: string): Promise<void> {
    const known = this.#toShow;
    if (known?.epoch !== epoch || known.place < place) this.#toShow = { epoch, place };
    return this.#showing.next(async () => {
      const { log, events, wakeUp } = this.#keys;
      const { epoch: of, place: upTo } = this.#toShow ?? nowhere;
      // After a failover the next event may have a lower place.
      this.#toShow = undefined;
      await this.#ask("run", scripts.advanceWatermark, [log, events], [of, upTo, wakeUp]);
    });
  }

  /**
   * Runs a script where writes are made.
   * @throws GatewayError UNAVAILABLE unless enough servers hold all that was written there
   */
  async #held(
    script: Script,
    on: readonly string[],
    args: readonly string[],
    write = this.#shared.write,
  ): Promise<unknown> {
    const { answer, missing } = await write(script, on, args);
    if (missing) throw storeAway(missing);
    return answer;
  }

  #ask(
    how: "run" | "runBuffer",
    script: Script,
    on: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    const { client } = this.#options.redis;
    return ask(client, () => script[how](client, on, args));
  }

  /**
   * An answer is older when it is heard, so Redis's clock is never ahead of what is told here: the
   * fastest answer is the best one, until a clock is set.
   */
  #hearClock(nowMs: number): void {
    const aheadMs = nowMs - performance.now();
    const isSet = this.#aheadMs - aheadMs > clockSetMs;
    if (aheadMs > this.#aheadMs || isSet) this.#aheadMs = aheadMs;
  }
}

/** Runs one at a time: calls that come during one share the next, since it began before them. */
class Rounds {
  #under: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  next(run: () => Promise<void>): Promise<void> {
    this.#next ??= this.#under
      .catch(() => {})
      .then(() => {
        this.#under = this.#next ?? this.#under;
        this.#next = undefined;
        return run();
      });
    return this.#next;
  }
}

const file = (name: string) => new URL(`./${name}.lua`, import.meta.url);
const onLog = (name: string) => loadScript(file("open-log"), file(name));
const scripts = {
  commit: onLog("commit"),
  readRecords: onLog("read-records"),
  readEvents: onLog("read-events"),
  advanceWatermark: onLog("advance-watermark"),
  readIndexes: loadScript(file("read-indexes")),
  dropExpired: loadScript(file("drop-expired")),
  touchLog: onLog("touch-log"),
};

/** Stands for no cursor. */
const nowhere = { place: "", epoch: "" };

/**
 * The page in an answer of read-events.lua.
 * @throws GatewayError OUT_OF_RANGE when the cursor cannot be resumed from
 */
function pageIn(answer: unknown, at: Cursor | undefined, newest: boolean): StoredPage {
  const [of, floor, watermark, known, upTo, tail, ...events] = answer as [
    ...[Buffer, Buffer, Buffer, number, Buffer, Buffer],
    ...Buffer[],
  ];
  const epoch = `${of}`;
  const cursor = (place: Buffer) => cursorOf(`${place}`, epoch);
  const rows = pairs(events).map(([place, bytes]) => ({ cursor: cursor(place), bytes }));
  const bounds = { epoch, floor: cursor(floor), tail: cursor(watermark) };
  if (newest) {
    if (at !== undefined) assertOf(at, epoch);
    rows.reverse();
  } else if (at !== undefined) {
    assertReadable(at, bounds);
    // The event was lost with a failed server, and the log has gone on without it.
    if (known !== 1) throw cursorExpired("the event it names was lost");
  }
  return { rows, upTo: cursor(upTo), bounds, stored: cursor(tail) };
}

/** A record as commit.lua takes it. @param args get its text and its bytes */
function givenOf(change: RecordChange, token: string, args: (string | Buffer)[]) {
  const { was, keepMs, text, expected, flags, attachments } = change;
  const names = ["v"];
  const values = [was];
  for (const [name, value] of expected) {
    names.push(`f:${name}`);
    values.push(value);
  }
  if (text === undefined) return { names, values, how: "keep" };
  if (text === "") return { names, values, how: "remove" };
  const fields = ["v", token];
  const beside: (string | number)[] = ["t", args.push(text)];
  const removed: string[] = [];
  for (const [name, value] of flags) fields.push(`f:${name}`, value);
  for (const [name, bytes] of attachments) {
    const field = `a:${name}`;
    if (bytes) beside.push(field, placeOf(bufferOf(bytes), args));
    else removed.push(field);
  }
  return { names, values, how: "set", keepMs: Math.ceil(keepMs), fields, beside, removed };
}

/** Where these bytes are among the arguments: an event's are there already. */
function placeOf(bytes: Buffer, args: (string | Buffer)[]): number {
  return args.indexOf(bytes) + 1 || args.push(bytes);
}

/** The changes of indexes as commit.lua takes them: member and score in turn. */
function scoresOf(changes: readonly IndexChange[]): string[] {
  return changes.flatMap(({ member, score = "" }) => [
    // Half a surrogate pair is U+FFFD in keys and arguments, and an error in the JSON that Redis reads.
    member.toWellFormed(),
    typeof score === "string" || Number.isInteger(score) ? `${score}` : score.toFixed(3),
  ]);
}

function foundIn(records: readonly RecordChange[], answer: readonly unknown[]): Found[] {
  return records.map(({ key, expected }, at) => {
    const [values, text, known] = answer.slice(3 * at, 3 * at + 3) as [string[], string, string];
    const [version = "", ...rest] = values;
    const flags = new Map([...expected.keys()].map((name, n) => [name, rest[n] ?? ""]));
    return { key, version, text: textOf(text, version, known), flags };
  });
}

/**
 * A record's text as it was committed, with what only Redis knew: its field `p`, which commit.lua
 * wrote. Absent from a record that was imported.
 */
function textOf(text: string, version: string, known: string): string {
  if (known === "") return text;
  const [now, instant, ...places] = known.split(" ");
  return filledIn(text, version, places, Number(now), instant === "" ? undefined : Number(instant));
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function pairs<T>(list: readonly T[]): [T, T][] {
  const found: [T, T][] = [];
  for (let at = 0; at + 1 < list.length; at += 2) found.push([list[at] as T, list[at + 1] as T]);
  return found;
}

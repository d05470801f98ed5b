import { UnderWayByName } from "../../collections/under-way.ts";
import type { Kind } from "../../model/kinds.ts";
import {
  type Subject as AboutSubject,
  type Begun,
  type Ending,
  type Intent,
  type IntentStats,
  type IntentStore,
  type IntentStoreOptions,
  intentOf,
  isUnknown,
  keptBeyondMs,
  type MoneyMethod,
  markOfEnding,
  maxAnswered,
  maxTracked,
  type NewIntent,
  type NextLook,
  type Pending,
  type Unsettled,
} from "../store.ts";
import { unsettledOf } from "../unsettled.ts";
import { MemoryKeys, type UsedKey } from "./keys.ts";

export interface MemoryIntentsOptions extends IntentStoreOptions {
  /** Wall clock in milliseconds. Default: `Date.now`. */
  readonly now?: () => number;
}

/** The intents of one process, in its memory: they are lost when it ends. */
export function createMemoryIntents(options: MemoryIntentsOptions): MemoryIntents {
  return new MemoryIntents(options);
}

/** An intent, and when it is looked at next: `Infinity` once it was given up. */
export interface KeptIntent {
  readonly intent: Intent;
  readonly dueMs: number;
}

/** What is stored of an external_id beside its intents. */
export interface KeptSubject {
  readonly locks: readonly (readonly [intentId: string, lock: Lock])[];
  readonly answered: readonly string[];
  readonly touchedMs: number;
}

interface Lock {
  readonly method: MoneyMethod;
  readonly untilMs: number;
}

interface Kept {
  intent: Intent;
  dueMs: number;
  key: string;
}

interface Subject {
  /** Lists, since hardly any external_id has more than one open call or lock. */
  open: readonly string[];
  /** By call id: the lock of each call without an answer, and until when it bars another call. */
  locks: KeptSubject["locks"];
  answered: readonly string[];
  touchedMs: number;
}

export class MemoryIntents implements IntentStore {
  readonly #options: MemoryIntentsOptions;
  readonly #keepMs: number;
  /** By account and id, in the order in which they began. */
  readonly #intents = new UnderWayByName<Kept>();
  /** By account, kind and external_id, in the order in which they were last touched. */
  readonly #subjects = new Map<string, Subject>();
  /** The subject that was touched last. */
  #newest: Subject | undefined;
  readonly #keys = new MemoryKeys();
  readonly #owners = new Map<string, { holder: string; untilMs: number }>();

  constructor(options: MemoryIntentsOptions) {
    this.#options = options;
    this.#keepMs = options.giveUpMs + keptBeyondMs;
  }

  async begin(account: string, given: NewIntent): Promise<Begun> {
    const now = this.#now();
    this.#sweep(now);
    const keyed = given.key && this.#keys.find(account, given.key, now);
    if (keyed) return keyed;

    const subject = this.#subject(account, given.kind, given.externalId, now);
    if (isLocked(subject, given.method, now)) return { kind: "inFlight" };

    const leaseUntilMs = now + given.leaseMs;
    const intent: Intent = {
      id: given.id,
      method: given.method,
      kind: given.kind,
      externalId: given.externalId,
      state: "running",
      startedAtMs: now,
      leaseUntilMs,
      subjectId: "",
      answered: subject.answered,
      checks: 0,
      notFound: 0,
      needsOperator: false,
      keyDigest: given.key?.digest ?? "",
    };
    this.adopt(account, intent);
    if (given.key) this.#keys.take(account, given.key, intent);
    return { kind: "started", intent };
  }

  async end(account: string, { id: intentId, ...about }: Intent, ending: Ending): Promise<void> {
    const now = this.#now();
    this.#keys.end(account, about.keyDigest, intentId, ending);
    const kept = this.#intents.get(id(account, intentId));
    const mark = markOfEnding(ending);
    if (!kept) {
      // Its events ended it before: what it made is no other call's doing even so.
      const known = this.#subjects.get(id(account, about.kind, about.externalId));
      if (mark && known && !known.answered.includes(mark)) addMark(known, mark);
      return;
    }
    const subject = this.#subject(account, about.kind, about.externalId, now);
    if (ending.state !== "unknown") unlock(subject, intentId);
    const was = kept.intent.state;
    const subjectId = ending.state === "pending" ? ending.subjectId : "";
    const again =
      was === "pending" && ending.state === "pending" && kept.intent.subjectId === subjectId;
    if (mark !== undefined && !again) addMark(subject, mark);
    if (ending.state === "closed") {
      this.remove(account, kept.intent);
      return;
    }
    // An outcome that became known in between stands.
    if (again || (ending.state === "unknown" && was !== "running")) return;
    kept.intent = { ...kept.intent, state: ending.state, subjectId, checks: 0, notFound: 0 };
    kept.dueMs = now + this.#options.firstLookMs;
  }

  async open(account: string, kind: Kind, externalId: string): Promise<Intent[]> {
    const subject = this.#subjects.get(id(account, kind, externalId));
    if (!subject) return [];
    const { answered } = subject;
    return subject.open
      .flatMap((intentId) => this.#intents.get(id(account, intentId))?.intent ?? [])
      .map((intent) => ({ ...intent, answered }));
  }

  async track(account: string, pending: Pending): Promise<boolean> {
    const now = this.#now();
    const intent = intentOf(pending, now);
    if (this.#intents.has(id(account, intent.id))) return true;
    if (this.#of(account).length >= maxTracked) return false;
    this.#keep(account, intent, now);
    return true;
  }

  async due(account: string, limit: number): Promise<Intent[]> {
    const now = this.#now();
    this.#sweep(now);
    return this.#of(account)
      .filter(({ dueMs }) => dueMs <= now)
      .sort((a, b) => a.dueMs - b.dueMs)
      .slice(0, limit)
      .map(({ intent }) => intent);
  }

  async postpone(account: string, intent: Intent, next: NextLook): Promise<void> {
    const kept = this.#intents.get(id(account, intent.id));
    if (!kept) return;
    kept.intent = { ...kept.intent, checks: next.checks, notFound: next.notFound };
    kept.dueMs = this.#now() + next.inMs;
  }

  async scheduleNow(account: string, subjects: readonly AboutSubject[]): Promise<boolean> {
    const now = this.#now();
    let found = false;
    for (const { kind, externalId } of subjects) {
      for (const intentId of this.#subjects.get(id(account, kind, externalId))?.open ?? []) {
        const kept = this.#intents.get(id(account, intentId));
        if (!kept || kept.intent.needsOperator) continue;
        if (kept.intent.state !== "running") kept.dueMs = Math.min(kept.dueMs, now);
        found ||= kept.dueMs <= now;
      }
    }
    return found;
  }

  async giveUp(account: string, intent: Intent): Promise<void> {
    const kept = this.#intents.get(id(account, intent.id));
    if (!kept) return;
    kept.intent = { ...kept.intent, needsOperator: true };
    kept.dueMs = Infinity;
    const subject = this.#subjects.get(id(account, intent.kind, intent.externalId));
    if (subject) unlock(subject, intent.id);
  }

  async stats(account: string): Promise<IntentStats> {
    const now = this.#now();
    const all = this.#of(account)
      .map(({ intent }) => intent)
      .slice(0, 1_000);
    const unknown = all.filter((intent) => isUnknown(intent, now));
    const pending = all.filter(({ state }) => state === "pending").length;
    const [oldest] = unknown;
    return {
      unknown: unknown.length,
      pending,
      ...(oldest && { oldestUnknownMs: oldest.startedAtMs }),
    };
  }

  async unsettled(account: string, limit: number): Promise<Unsettled> {
    const now = this.#now();
    this.#sweep(now);
    const all = this.#of(account).map(({ intent, dueMs }) =>
      Number.isFinite(dueMs) ? { ...intent, nextLookMs: dueMs } : intent,
    );
    return unsettledOf(all, limit, now);
  }

  async lease(account: string, holder: string, ttlMs: number): Promise<boolean> {
    const now = this.#now();
    const owner = this.#owners.get(account);
    if (owner && owner.holder !== holder && owner.untilMs > now) return false;
    this.#owners.set(account, { holder, untilMs: now + ttlMs });
    return true;
  }

  nowMs(): number {
    return this.#now();
  }

  async close(): Promise<void> {}

  /** An intent as stored here, for a store that keeps it elsewhere too; undefined if not stored. */
  intentOf(account: string, intentId: string): KeptIntent | undefined {
    const kept = this.#intents.get(id(account, intentId));
    return kept && { intent: kept.intent, dueMs: kept.dueMs };
  }

  /** The same for an external_id. */
  subjectOf(account: string, kind: Kind, externalId: string): KeptSubject | undefined {
    const subject = this.#subjects.get(id(account, kind, externalId));
    return subject;
  }

  /** The same for an `Idempotency-Key`. */
  keyOf(account: string, digest: string): UsedKey | undefined {
    return this.#keys.used(account, digest);
  }

  /** Restores an intent. Intents must be restored in the order in which they began. */
  restoreIntent(account: string, { intent, dueMs }: KeptIntent): void {
    this.#keep(account, intent, dueMs);
  }

  /**
   * Restores an external_id, after its intents and in the order of the last touch. Only the locks
   * of intents that are open here are restored.
   */
  restoreSubject(account: string, kind: Kind, externalId: string, kept: KeptSubject): void {
    const subject = this.#subject(account, kind, externalId, kept.touchedMs);
    subject.answered = kept.answered;
    for (const [intentId, held] of kept.locks) {
      if (subject.open.includes(intentId)) lock(subject, intentId, held);
    }
  }

  restoreKey(account: string, digest: string, used: UsedKey): void {
    this.#keys.restore(account, digest, used);
  }

  /** How many external_ids are stored. */
  get size(): number {
    return this.#subjects.size;
  }

  /** Stores an intent with its lock. It may have begun in another store. */
  adopt(account: string, intent: Intent): void {
    const now = this.#now();
    this.#sweep(now);
    this.#keep(account, intent, intent.leaseUntilMs);
    const untilMs = intent.startedAtMs + this.#options.giveUpMs;
    const subject = this.#subject(account, intent.kind, intent.externalId, now);
    lock(subject, intent.id, { method: intent.method, untilMs });
  }

  /** Removes an intent and its lock. */
  remove(account: string, { id: intentId, kind, externalId }: Intent): void {
    this.#intents.delete(id(account, intentId));
    const key = id(account, kind, externalId);
    const subject = this.#subjects.get(key);
    if (!subject) return;
    subject.open = without(subject.open, (other) => other === intentId);
    unlock(subject, intentId);
    if (subject.open.length === 0 && subject.answered.length === 0) this.#subjects.delete(key);
  }

  /** Removes an intent, and all that is stored of its external_id unless another intent is open. */
  forget(account: string, intent: Intent): void {
    this.remove(account, intent);
    const key = id(account, intent.kind, intent.externalId);
    if (this.#subjects.get(key)?.open.length === 0) this.#subjects.delete(key);
  }

  #keep(account: string, intent: Intent, dueMs: number): void {
    this.#intents.set(id(account, intent.id), { intent, dueMs, key: account });
    const { kind, externalId } = intent;
    const subject = this.#subject(account, kind, externalId, this.#now());
    if (!subject.open.includes(intent.id)) subject.open = subject.open.concat(intent.id);
  }

  #subject(account: string, kind: Kind, externalId: string, now: number): Subject {
    const key = id(account, kind, externalId);
    const subject = this.#subjects.get(key) ?? {
      ...{ open: none, locks: none, answered: none },
      touchedMs: now,
    };
    subject.touchedMs = now;
    if (subject === this.#newest && this.#subjects.has(key)) return subject;
    this.#subjects.delete(key);
    this.#subjects.set(key, subject);
    this.#newest = subject;
    return subject;
  }

  #of(account: string): Kept[] {
    return [...this.#intents.values()].filter(({ key }) => key === account);
  }

  /** Removes what is older than its retention, and what exceeds `maxSubjects`. */
  #sweep(now: number): void {
    this.#keys.sweep(now);
    for (const { intent, key } of this.#intents.values()) {
      if (intent.startedAtMs > now - this.#keepMs) break;
      this.remove(key, intent);
    }
    for (const [key, { touchedMs, open }] of this.#subjects) {
      const isOld = touchedMs <= now - this.#keepMs;
      if (!isOld && (open.length > 0 || this.#subjects.size <= maxSubjects)) break;
      if (open.length === 0) this.#subjects.delete(key);
    }
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

function isLocked({ locks }: Subject, method: MoneyMethod, now: number): boolean {
  return locks.some(([, held]) => held.method === method && held.untilMs > now);
}

function lock(subject: Subject, intentId: string, held: Lock): void {
  unlock(subject, intentId);
  subject.locks = subject.locks.concat([[intentId, held]]);
}

function addMark(subject: Subject, mark: string): void {
  subject.answered = [...subject.answered, mark].slice(-maxAnswered);
}

function unlock(subject: Subject, intentId: string): void {
  subject.locks = without(subject.locks, ([holder]) => holder === intentId);
}

function without<Item>(items: readonly Item[], isGone: (item: Item) => boolean): readonly Item[] {
  const left = items.filter((item) => !isGone(item));
  return left.length === 0 ? none : left;
}

/** Shared by all subjects with an empty list. */
const none: readonly never[] = [];

/** Beyond this number, the oldest external_ids without an open call lose their marks. */
const maxSubjects = 100_000;

/** The map key of an intent (by id) or of an external_id (by kind and text), unique in its map. */
function id(account: string, ...parts: readonly (string | number)[]): string {
  return `${account.length}:${account}:${parts.join(":")}`;
}

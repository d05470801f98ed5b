import type { Kind } from "../../model/kinds.ts";
import { moduleBeside } from "../../sqlite/module-beside.ts";
import type { StoreThread } from "../../sqlite/store-thread.ts";
import type { OnLateEnding } from "../late-ending.ts";
import { MemoryIntents, type MemoryIntentsOptions } from "../memory/store.ts";
import { Outbox } from "../outbox.ts";
import {
  type Begun,
  type Ending,
  type Intent,
  type IntentStats,
  type IntentStore,
  intentOf,
  keptBeyondMs,
  keyRetentionMs,
  type NewIntent,
  type NextLook,
  type Pending,
  type Subject,
  type Unsettled,
} from "../store.ts";
import type { IntentRow, KeyRow, Rows, SubjectRow } from "./rows.ts";

export interface SqliteIntentsOptions extends MemoryIntentsOptions {
  /** Must have `intentsRoom` as its room `intents`. Stays open when the store is closed. */
  readonly thread: StoreThread;
  /** Called when a call's own ending follows a stored unknown outcome, until it does not throw. */
  readonly onLateEnding?: OnLateEnding;
}

/** The module with this store's operations, for the store's thread. */
export const intentsRoom = moduleBeside(import.meta.url, "operations");

/**
 * The intents of a gateway that is one process, in its memory and in the embedded store. Memory has
 * all that is on the disk, and decides; a call begins, and its ending returns, once that is on the
 * disk too. While the disk takes no writes, calls without an Idempotency-Key go on, and what they
 * changed is written when the disk takes writes again.
 */
export async function createSqliteIntents(options: SqliteIntentsOptions): Promise<IntentStore> {
  const store = new SqliteIntents(options);
  await store.load();
  return store;
}

/** What is not on the disk yet, by name. */
interface Unwritten {
  readonly intents: Map<string, Omit<IntentRow, "kept">>;
  readonly subjects: Map<string, Omit<SubjectRow, "kept">>;
  readonly keys: Map<string, Omit<KeyRow, "kept">>;
}

type Names = {
  readonly [K in keyof Unwritten]: readonly (Unwritten[K] extends Map<string, infer V>
    ? V
    : never)[];
};

class SqliteIntents implements IntentStore {
  readonly #options: SqliteIntentsOptions;
  readonly #memory: MemoryIntents;
  readonly #unwritten: Unwritten = { intents: new Map(), subjects: new Map(), keys: new Map() };
  readonly #lateEndings = new Outbox(() => {});
  readonly #sweeper: NodeJS.Timeout;
  #flushing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: SqliteIntentsOptions) {
    this.#options = options;
    this.#memory = new MemoryIntents(options);
    this.#sweeper = setInterval(() => void this.#sweep(), sweepMs).unref();
  }

  /**
   * Loads what is on the disk into memory. Only one process uses the directory, so calls that are
   * running there are those of a process that is gone: their leases are over.
   */
  async load(): Promise<void> {
    const memory = this.#memory;
    const now = this.nowMs();
    const over = (ms: number) => Math.min(ms, now);
    await this.#sweep();
    for (const what of ["intents", "subjects", "keys"] as const) {
      for (let offset = 0; ; offset += loadSize) {
        const rows = await this.#run<Rows>("load", [what, offset, loadSize]);
        for (const { account, kept } of rows.intents) {
          if (!kept) continue;
          const { intent, dueMs } = kept;
          const lost = { ...intent, leaseUntilMs: over(intent.leaseUntilMs) };
          const isRunning = intent.state === "running";
          memory.restoreIntent(account, isRunning ? { intent: lost, dueMs: over(dueMs) } : kept);
        }
        for (const { account, kind, externalId, kept } of rows.subjects) {
          if (kept) memory.restoreSubject(account, kind, externalId, kept);
        }
        for (const { account, digest, kept } of rows.keys) {
          if (!kept) continue;
          const { outcome } = kept;
          const answer = typeof outcome === "string" ? outcome : Buffer.from(outcome);
          const leaseUntilMs = over(kept.leaseUntilMs);
          memory.restoreKey(account, digest, { ...kept, leaseUntilMs, outcome: answer });
        }
        if (rows[what].length < loadSize) break;
      }
    }
  }

  async begin(account: string, given: NewIntent): Promise<Begun> {
    const begun = await this.#memory.begin(account, given);
    if (begun.kind !== "started") return begun;
    const names = namesOf(account, given, [given.id], given.key?.digest);
    try {
      await this.#write(names);
      return begun;
    } catch (error) {
      if (given.key) {
        await this.#memory.end(account, begun.intent, { state: "closed", key: "free" });
      }
      // The disk may have the call even so: what memory has is written later.
      this.#writeLater(names);
      if (given.key) throw error;
      return begun;
    }
  }

  async end(account: string, intent: Intent, ending: Ending): Promise<void> {
    const isLate = this.#memory.intentOf(account, intent.id)?.intent.state === "unknown";
    await this.#memory.end(account, intent, ending);
    const names = namesOf(account, intent, [intent.id], intent.keyDigest || undefined);
    if (!isLate) return await this.#save(names);
    // Publish first: if the process dies in between, the disk still has the call as unknown.
    await this.#lateEndings.write(async () => {
      await this.#options.onLateEnding?.(account, intent, ending);
      await this.#save(names);
    });
  }

  open(account: string, kind: Kind, externalId: string): Promise<Intent[]> {
    return this.#memory.open(account, kind, externalId);
  }

  async track(account: string, pending: Pending): Promise<boolean> {
    const tracked = await this.#memory.track(account, pending);
    const { id } = intentOf(pending, 0);
    if (tracked) await this.#save(namesOf(account, pending, [id]));
    return tracked;
  }

  due(account: string, limit: number): Promise<Intent[]> {
    return this.#memory.due(account, limit);
  }

  async postpone(account: string, intent: Intent, next: NextLook): Promise<void> {
    await this.#memory.postpone(account, intent, next);
    await this.#save(namesOf(account, intent, [intent.id]));
  }

  async scheduleNow(account: string, subjects: readonly Subject[]): Promise<boolean> {
    const found = await this.#memory.scheduleNow(account, subjects);
    for (const { kind, externalId } of subjects) {
      const open = await this.#memory.open(account, kind, externalId);
      const ids = open.map(({ id }) => id);
      if (ids.length > 0) await this.#save(namesOf(account, { kind, externalId }, ids));
    }
    return found;
  }

  async giveUp(account: string, intent: Intent): Promise<void> {
    await this.#memory.giveUp(account, intent);
    await this.#save(namesOf(account, intent, [intent.id]));
  }

  stats(account: string): Promise<IntentStats> {
    return this.#memory.stats(account);
  }

  unsettled(account: string, limit: number): Promise<Unsettled> {
    return this.#memory.unsettled(account, limit);
  }

  nowMs(): number {
    return this.#memory.nowMs();
  }

  /** Kept in memory, since there is one process: after a restart no other holder competes. */
  lease(account: string, holder: string, ttlMs: number): Promise<boolean> {
    return this.#memory.lease(account, holder, ttlMs);
  }

  /** Tries once more to write what could not be written. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeper);
    clearTimeout(this.#timer);
    await this.#lateEndings.close();
    await this.#flush().catch(() => {});
  }

  /** Writes to the disk what memory has of these, now or as soon as it can be done. */
  async #save(names: Names): Promise<void> {
    try {
      await this.#write(names);
    } catch {
      this.#writeLater(names);
    }
  }

  async #write(names: Names): Promise<void> {
    const memory = this.#memory;
    const rows: Rows = {
      intents: names.intents.map((name) => ({
        ...name,
        kept: memory.intentOf(name.account, name.id),
      })),
      subjects: names.subjects.map((name) => ({
        ...name,
        kept: memory.subjectOf(name.account, name.kind, name.externalId),
      })),
      keys: names.keys.map((name) => ({ ...name, kept: memory.keyOf(name.account, name.digest) })),
    };
    await this.#run("save", [rows]);
  }

  #writeLater({ intents, subjects, keys }: Names): void {
    const unwritten = this.#unwritten;
    for (const name of intents) unwritten.intents.set(JSON.stringify(name), name);
    for (const name of subjects) unwritten.subjects.set(JSON.stringify(name), name);
    for (const name of keys) unwritten.keys.set(JSON.stringify(name), name);
    this.#tryLater();
  }

  #tryLater(): void {
    if (this.#closed || this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#flush().catch(() => this.#tryLater());
    }, retryMs).unref();
  }

  #flush(): Promise<void> {
    this.#flushing ??= this.#writeAll().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #writeAll(): Promise<void> {
    const { intents, subjects, keys } = this.#unwritten;
    while (intents.size + subjects.size + keys.size > 0) {
      const names: Names = {
        intents: taken(intents),
        subjects: taken(subjects),
        keys: taken(keys),
      };
      try {
        await this.#write(names);
      } catch (error) {
        this.#writeLater(names);
        throw error;
      }
    }
  }

  async #sweep(): Promise<void> {
    const now = this.nowMs();
    const intentsMs = now - this.#options.giveUpMs - keptBeyondMs;
    try {
      await this.#run("sweep", [{ intentsMs, keysMs: now - keyRetentionMs }]);
    } catch {
      // The store reports its failures itself; the next sweep tries again.
    }
  }

  #run<T>(operation: string, args: readonly unknown[]): Promise<T> {
    return this.#options.thread.run<T>("intents", operation, args);
  }
}

const loadSize = 5_000;
const retryMs = 250;
/** How many rows of each sort are written at a time when the disk takes writes again. */
const flushSize = 500;
const sweepMs = 60_000;

/** The names of what a step of a call changes. */
function namesOf(
  account: string,
  { kind, externalId }: Pick<NewIntent, "kind" | "externalId">,
  ids: readonly string[],
  digest?: string,
): Names {
  return {
    intents: ids.map((id) => ({ account, id })),
    subjects: [{ account, kind, externalId }],
    keys: digest === undefined ? [] : [{ account, digest }],
  };
}

/** Removes and returns the first of those that wait. */
function taken<T>(waiting: Map<string, T>): T[] {
  const some = [...waiting].slice(0, flushSize);
  for (const [name] of some) waiting.delete(name);
  return some.map(([, value]) => value);
}

import { setTimeout as delay } from "node:timers/promises";
import { UnderWayByName } from "../../collections/under-way.ts";
import type { Kind } from "../../model/kinds.ts";
import { ask, StoreUnavailable, storeAway } from "../../redis/ask.ts";
import type { RedisClient } from "../../redis/connect.ts";
import { within } from "../../redis/deadline.ts";
import { type AccountKeys, accountKeys } from "../../redis/keys.ts";
import { loadScript } from "../../redis/script.ts";
import type { Writer } from "../../redis/writer.ts";
import { isAway } from "../away.ts";
import { endingWrite, type Found, type OnLateEnding } from "../late-ending.ts";
import { MemoryIntents } from "../memory/store.ts";
import { Outbox } from "../outbox.ts";
import { marksOf, readIntent } from "../record.ts";
import {
  type Begun,
  type Ending,
  type Intent,
  type IntentStats,
  type IntentStore,
  type IntentStoreOptions,
  intentOf,
  isUnknown,
  maxTracked,
  type NewIntent,
  type NextLook,
  type Pending,
  type Subject,
  type Unsettled,
  type UnsettledIntent,
} from "../store.ts";
import { maxInspected, unsettledOf } from "../unsettled.ts";
import { RedisIntentWrites, startedIntent } from "./writes.ts";

export interface RedisIntentsOptions extends IntentStoreOptions {
  /** The store does not close it: close it after the store. */
  readonly client: RedisClient;
  /**
   * Writes the intents, so that as many replicas as it waits for hold an intent before anything is
   * sent. The store closes it. Default: one that waits for no replica.
   */
  readonly writer?: Writer;
  readonly prefix: string;
  /** Called when calls that move money notice that Redis is away (`alone`) or back (`shared`). */
  readonly onStateChange?: (state: "shared" | "alone", cause?: unknown) => void;
  /** Called again when it fails, as long as this process lives. */
  readonly onLateEnding?: OnLateEnding;
  /** No call that moves money goes on without Redis. Default: calls without a key do. */
  readonly required?: boolean;
  /** Longest that Redis may take to answer. Default: 500 ms. */
  readonly answerMs?: number;
  /** The intents that this process keeps in memory. Default: a new memory. */
  readonly memory?: MemoryIntents;
}

/**
 * The intents of all replicas, in Redis. While Redis is away (`StoreUnavailable.away`), calls
 * without an Idempotency-Key go on, unless `required` is set: their intents, and the locks between
 * calls of this process, are kept in memory and written as soon as Redis is back. While Redis is
 * merely silent no call goes on: it may hold the lock of a call that is open at another replica.
 */
export function createRedisIntents(options: RedisIntentsOptions): IntentStore {
  return new RedisIntents(options);
}

class RedisIntents implements IntentStore {
  readonly #options: RedisIntentsOptions;
  readonly #answerMs: number;
  readonly #writes: RedisIntentWrites;
  /** Calls that this process began and whose outcome it does not know. */
  readonly #own: MemoryIntents;
  /** Calls that are running in this process, by id. */
  readonly #running = new UnderWayByName<NewIntent>();
  /** Writes that Redis does not have yet. */
  readonly #outbox: Outbox;
  /**
   * Ids of calls that ended here and whose ending Redis does not have yet: this process must not
   * look them up as lost.
   */
  readonly #unwritten = new Set<string>();

  constructor(options: RedisIntentsOptions) {
    this.#options = options;
    this.#answerMs = options.answerMs ?? 500;
    this.#writes = new RedisIntentWrites({ ...options, answerMs: this.#answerMs });
    this.#own = options.memory ?? new MemoryIntents(options);
    this.#outbox = new Outbox((state, cause) => options.onStateChange?.(state, cause));
  }

  async begin(account: string, given: NewIntent): Promise<Begun> {
    let asked = false;
    try {
      const begun = await this.#whileBroken(async () => {
        await this.#flush();
        asked = true;
        return await this.#writes.begin(account, given);
      });
      if (begun.kind === "started") {
        this.#own.adopt(account, begun.intent);
        this.#running.set(given.id, given);
      }
      return begun;
    } catch (error) {
      if (this.#mayGoAlone(given, error)) return await this.#beginAlone(account, given, error);
      // Redis may have taken key and lock even so.
      if (asked) {
        this.#unwritten.add(given.id);
        this.#outbox.add(this.#free(account, given), error);
      }
      throw error;
    }
  }

  /** Makes the waiting writes first: a call must not overtake a lock that is not written yet. */
  async #flush(): Promise<void> {
    if (this.#outbox.isEmpty) return;
    await within(this.#answerMs, this.#outbox.flush()).catch((error: unknown) => {
      throw storeAway(error, this.#client);
    });
  }

  /** Retries on a broken connection: only the next connection shows whether Redis is away. */
  async #whileBroken<T>(ask: () => Promise<T>): Promise<T> {
    const endsMs = performance.now() + this.#answerMs;
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        const mayBeBack = error instanceof StoreUnavailable && error.broken && !error.away;
        if (!mayBeBack || performance.now() > endsMs) throw error;
        await delay(10);
      }
    }
  }

  #mayGoAlone({ key }: NewIntent, error: unknown): boolean {
    return !key && !this.#options.required && isAway(error);
  }

  async end(account: string, intent: Intent, ending: Ending): Promise<void> {
    await this.#own.end(account, intent, ending);
    // Keep only calls without an answer: their locks are needed when Redis goes away. Another
    // replica may settle the others in Redis, and this process would not notice.
    if (ending.state !== "unknown") this.#own.remove(account, intent);
    const given = this.#running.get(intent.id);
    // `keep`: its events ended it, and its own answer is still to come.
    if (ending.state === "unknown" || ending.key !== "keep") this.#running.delete(intent.id);
    const write = this.#endingWrite(account, intent, ending, given);
    let isWritten = false;
    await this.#outbox.write(async () => {
      await write();
      isWritten = true;
    });
    if (!isWritten && ending.state !== "unknown") this.#unwritten.add(intent.id);
    // Redis has everything else, as long as it is not away.
    if (ending.state !== "unknown" && this.#outbox.isEmpty) this.#own.forget(account, intent);
  }

  async open(account: string, kind: Kind, externalId: string): Promise<Intent[]> {
    const shared = await this.#open(account, kind, externalId);
    // Own calls that Redis does not have: running here and lost with a server that failed, or begun
    // while Redis was away.
    const known = new Set(shared.map(({ id }) => id));
    const own = (await this.#own.open(account, kind, externalId)).filter(
      ({ id, state }) => !known.has(id) && (state === "running" || !this.#outbox.isEmpty),
    );
    return [...shared, ...own];
  }

  async #open(account: string, kind: Kind, externalId: string): Promise<Intent[]> {
    const key = this.#keys(account).intentsOf(String(kind), externalId);
    for (let first = true; ; first = false) {
      const fields = await this.#ask(() => this.#client.hgetall(key));
      const ids = Object.keys(fields)
        .filter((name) => name.startsWith(openField))
        .sort((a, b) => Number(fields[a]) - Number(fields[b]))
        .map((name) => name.slice(openField.length));
      const { intents, gone } = await this.#intents(account, ids);
      // A call that ended between the two reads has its mark in `answered` only now: read again.
      if (gone.length > 0 && first) continue;
      const answered = marksOf(fields.answered);
      return intents.map((intent) => ({ ...intent, answered }));
    }
  }

  async track(account: string, pending: Pending): Promise<boolean> {
    const intent = intentOf(pending, this.nowMs(account));
    return await this.#writes.adopt(account, intent, {
      ...{ ageMs: pending.ageMs, leaseMs: 0, max: maxTracked },
    });
  }

  async due(account: string, limit: number): Promise<Intent[]> {
    const keys = this.#keys(account);
    const [now, ids] = (await this.#ask(() =>
      scripts.due.run(this.#client, [keys.intentsDue], [String(limit)]),
    )) as [string, string[]];
    this.#writes.hearClock(account, Number(now));
    const { intents, gone } = await this.#intents(account, ids);
    if (gone.length > 0) await this.#ask(() => this.#client.zrem(keys.intentsDue, ...gone));
    return intents.filter(({ id }) => !this.#unwritten.has(id));
  }

  async postpone(account: string, intent: Intent, next: NextLook): Promise<void> {
    const keys = this.#keys(account);
    const args = [intent.id, next.inMs, next.checks, next.notFound].map(String);
    const on = [keys.intent(intent.id), keys.intentsDue];
    await this.#ask(() => scripts.postpone.run(this.#client, on, args));
  }

  async scheduleNow(account: string, subjects: readonly Subject[]): Promise<boolean> {
    if (subjects.length === 0) return false;
    const keys = this.#keys(account);
    const on = [
      keys.intentsDue,
      ...subjects.map(({ kind, externalId }) => keys.intentsOf(String(kind), externalId)),
    ];
    const found = await this.#ask(() =>
      scripts.scheduleNow.run(this.#client, on, [keys.intent("")]),
    );
    return found === 1;
  }

  async giveUp(account: string, intent: Intent): Promise<void> {
    await this.#writes.giveUp(account, intent);
    this.#own.forget(account, intent);
  }

  async stats(account: string): Promise<IntentStats> {
    const { intentsDue } = this.#keys(account);
    const ids = await this.#ask(() => this.#client.zrange(intentsDue, "0", "999"));
    const { intents } = await this.#intents(account, ids);
    const now = this.nowMs(account);
    const unknown = intents.filter((intent) => isUnknown(intent, now));
    const oldest = Math.min(...unknown.map(({ startedAtMs }) => startedAtMs));
    return {
      unknown: unknown.length,
      pending: intents.filter(({ state }) => state === "pending").length,
      ...(unknown.length > 0 && { oldestUnknownMs: oldest }),
    };
  }

  async unsettled(account: string, limit: number): Promise<Unsettled> {
    const { intentsDue, intentsGivenUp } = this.#keys(account);
    const last = String(maxInspected - 1);
    const dueAt = scoresOf(
      await this.#ask(() => this.#client.zrange(intentsDue, "0", last, "WITHSCORES")),
    );
    const givenUp = await this.#ask(() => this.#client.zrange(intentsGivenUp, "0", last, "REV"));
    const { intents, gone } = await this.#intents(account, [...dueAt.keys(), ...givenUp]);
    const settled = gone.filter((id) => !dueAt.has(id));
    if (settled.length > 0) await this.#ask(() => this.#client.zrem(intentsGivenUp, ...settled));
    const all = intents.map((intent): UnsettledIntent => {
      const nextLookMs = dueAt.get(intent.id);
      return nextLookMs === undefined ? intent : { ...intent, nextLookMs };
    });
    return unsettledOf(all, limit, this.nowMs(account));
  }

  async lease(account: string, holder: string, ttlMs: number): Promise<boolean> {
    const on = [this.#keys(account).reconciler];
    const args = [holder, String(ttlMs)];
    return (await this.#ask(() => scripts.lease.run(this.#client, on, args))) === 1;
  }

  nowMs(account: string): number {
    return this.#writes.nowMs(account);
  }

  /** Tries once more to write what could not be written. */
  async close(): Promise<void> {
    await this.#outbox.close();
    this.#writes.close();
  }

  async #beginAlone(account: string, given: NewIntent, cause: unknown): Promise<Begun> {
    const begun = await this.#own.begin(account, given);
    if (begun.kind !== "started") return begun;
    const { intent } = begun;
    // Our clock may differ from Redis's, so Redis gets the elapsed time.
    const at = performance.now();
    this.#running.set(given.id, given);
    const { leaseMs } = given;
    this.#outbox.add(async () => {
      const ageMs = performance.now() - at;
      await this.#writes.adopt(account, intent, { ageMs, leaseMs });
    }, cause);
    return begun;
  }

  #endingWrite(account: string, intent: Intent, ending: Ending, given?: NewIntent) {
    const write = endingWrite(
      (isPublished) => this.#end(account, intent, ending, given, isPublished),
      () => this.#options.onLateEnding?.(account, intent, ending),
    );
    return async () => {
      await write();
      this.#unwritten.delete(intent.id);
    };
  }

  /** @param given the call, if it ran here */
  async #end(
    account: string,
    intent: Intent,
    ending: Ending,
    given: NewIntent | undefined,
    isPublished: boolean,
  ): Promise<Found> {
    const write = () => this.#writes.end(account, intent, ending, given?.key, isPublished);
    const found = await write();
    if (found || !given || ending.state === "closed") return found;
    // It was lost with a server that failed. If its events ended it, a note of that is stored, and
    // this adopts nothing.
    const ageMs = this.nowMs(account) - intent.startedAtMs;
    const { leaseMs } = given;
    if (ageMs > leaseMs) return undefined;
    await this.#writes.adopt(account, intent, { ageMs, leaseMs });
    return await write();
  }

  /** Undoes a begin that may not have happened, or may still happen. */
  #free(account: string, given: NewIntent): () => Promise<void> {
    return this.#endingWrite(account, startedIntent(given, 0, []), {
      state: "closed",
      key: "free",
    });
  }

  async #intents(
    account: string,
    ids: readonly string[],
  ): Promise<{ intents: Intent[]; gone: string[] }> {
    if (ids.length === 0) return { intents: [], gone: [] };
    const keys = this.#keys(account);
    const answers = await this.#ask(() => {
      const pipeline = this.#client.pipeline();
      for (const id of ids) pipeline.hgetall(keys.intent(id));
      return pipeline.exec();
    });
    const intents: Intent[] = [];
    const gone: string[] = [];
    for (const [index, [error, fields]] of (answers ?? []).entries()) {
      if (error) throw error;
      const intent = readIntent(fields as Record<string, string>);
      if (intent) intents.push(intent);
      else gone.push(ids[index] ?? "");
    }
    return { intents, gone };
  }

  #keys(account: string): AccountKeys {
    return accountKeys(this.#options.prefix, account);
  }

  get #client(): RedisClient {
    return this.#options.client;
  }

  #ask<T>(question: () => Promise<T>): Promise<T> {
    return ask(this.#client, question, this.#answerMs);
  }
}

const openField = "open:";

/** Reads an answer of ZRANGE WITHSCORES: members and scores in turn. */
function scoresOf(members: readonly string[]): Map<string, number> {
  const scores = new Map<string, number>();
  for (let at = 0; at + 1 < members.length; at += 2) {
    scores.set(members[at] ?? "", Number(members[at + 1]));
  }
  return scores;
}
const script = (name: string) => loadScript(new URL(`./${name}.lua`, import.meta.url));
const scripts = {
  due: script("due-intents"),
  postpone: script("postpone-intent"),
  scheduleNow: script("schedule-intents-now"),
  lease: script("lease-reconciler"),
};

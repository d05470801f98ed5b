import type { EventKind } from "../gen/payments/v1/event_pb.ts";
import type { RedisClient } from "../redis/connect.ts";
import { type AccountKeys, accountKeys } from "../redis/keys.ts";
import { reach } from "../redis/reach.ts";
import { loadScript } from "../redis/script.ts";
import { MemoryIntents } from "./memory-store.ts";
import { Outbox } from "./outbox.ts";
import { intentFields, readIntent } from "./record.ts";
import {
  type Begun,
  type Ending,
  type Intent,
  type IntentStats,
  type IntentStore,
  type IntentStoreOptions,
  isUnknown,
  keptBeyondMs,
  keyRetentionMs,
  mostAnswered,
  type NewIntent,
  type NextLook,
  type Unsettled,
  type UnsettledIntent,
} from "./store.ts";
import { mostLookedInto, unsettledOf } from "./unsettled.ts";

export interface RedisIntentsOptions extends IntentStoreOptions {
  /** The caller's to close, after the store. */
  readonly client: RedisClient;
  readonly prefix: string;
  /** Hears of it when Redis goes away and comes back, as far as calls that move money notice. */
  readonly onStateChange?: (state: "shared" | "alone", cause?: unknown) => void;
  /** Longest that Redis may take to answer before a call goes on without it. Default: 500 ms. */
  readonly answerMs?: number;
}

/**
 * The intents of all replicas, in Redis. While it does not answer, calls without an Idempotency-Key
 * go on: their intents, and the locks between calls of this process, are kept in memory and written
 * as soon as it is back (contract, section 9).
 */
export function createRedisIntents(options: RedisIntentsOptions): IntentStore {
  return new RedisIntents(options);
}

class RedisIntents implements IntentStore {
  readonly #options: RedisIntentsOptions;
  readonly #keepMs: number;
  readonly #answerMs: number;
  /** What this process began and does not know the outcome of. */
  readonly #own: MemoryIntents;
  /** What has yet to be written. */
  readonly #outbox: Outbox;

  constructor(options: RedisIntentsOptions) {
    this.#options = options;
    this.#keepMs = options.giveUpMs + keptBeyondMs;
    this.#answerMs = options.answerMs ?? 500;
    this.#own = new MemoryIntents(options);
    this.#outbox = new Outbox((state, cause) => options.onStateChange?.(state, cause));
  }

  async begin(account: string, given: NewIntent): Promise<Begun> {
    try {
      // A lock that is not written yet must not be overtaken.
      await this.#outbox.flush();
    } catch (error) {
      if (given.key) throw error;
      return await this.#beginAlone(account, given, error);
    }
    try {
      const begun = await this.#begin(account, given);
      if (begun.kind === "started") this.#own.adopt(account, begun.intent, given.exclusive);
      return begun;
    } catch (error) {
      if (!given.key) return await this.#beginAlone(account, given, error);
      // Redis may have taken the key all the same.
      this.#outbox.add(() => this.#free(account, given), error);
      throw error;
    }
  }

  async end(account: string, intent: Intent, ending: Ending): Promise<void> {
    await this.#own.end(account, intent, ending);
    // What is settled in Redis by others would never be heard of here: only what has no answer, and
    // so bars a second call, is still of use when Redis goes away.
    if (ending.state !== "unknown") this.#forget(account, intent);
    await this.#outbox.write(() => this.#end(account, intent, ending));
  }

  async open(account: string, kind: EventKind, externalId: string): Promise<Intent[]> {
    const key = this.#keys(account).intentsOf(String(kind), externalId);
    let fields: Record<string, string>;
    try {
      fields = await this.#reach(this.#client.hgetall(key));
    } catch (error) {
      const own = await this.#own.open(account, kind, externalId);
      if (own.length > 0) return own;
      throw error;
    }
    const ids = Object.keys(fields)
      .filter((name) => name.startsWith(openField))
      .sort((a, b) => Number(fields[a]) - Number(fields[b]))
      .map((name) => name.slice(openField.length));
    const { intents } = await this.#intents(account, ids);
    const known = new Set(intents.map(({ id }) => id));
    const own = await this.#own.open(account, kind, externalId);
    // Begun while Redis was away, and not written yet.
    return this.#outbox.isEmpty
      ? intents
      : [...intents, ...own.filter((intent) => !known.has(intent.id))];
  }

  async due(account: string, limit: number): Promise<Intent[]> {
    const keys = this.#keys(account);
    const ids = (await this.#reach(
      scripts.due.run(this.#client, [keys.intentsDue], [String(limit)]),
    )) as string[];
    const { intents, gone } = await this.#intents(account, ids);
    if (gone.length > 0) await this.#reach(this.#client.zrem(keys.intentsDue, ...gone));
    return intents;
  }

  async postpone(account: string, intent: Intent, next: NextLook): Promise<void> {
    const keys = this.#keys(account);
    const args = [intent.id, next.inMs, next.checks, next.notFound].map(String);
    const on = [keys.intent(intent.id), keys.intentsDue];
    await this.#reach(scripts.postpone.run(this.#client, on, args));
  }

  async hasten(account: string, kind: EventKind, externalId: string): Promise<void> {
    const ids = (await this.open(account, kind, externalId))
      .filter(({ state }) => state !== "running")
      .map(({ id }) => id);
    if (ids.length === 0) return;
    const keys = this.#keys(account);
    await this.#reach(scripts.hasten.run(this.#client, [keys.intentsDue], ids));
  }

  async giveUp(account: string, intent: Intent): Promise<void> {
    const on = this.#keysOf(account, intent);
    const givenUp = [...on, this.#keys(account).intentsGivenUp];
    const args = [intent.id, String(this.#keepMs)];
    await this.#reach(scripts.giveUp.run(this.#client, givenUp, args));
    this.#forget(account, intent);
  }

  async stats(account: string): Promise<IntentStats> {
    const ids = await this.#reach(this.#client.zrange(this.#keys(account).intentsDue, "0", "999"));
    const { intents } = await this.#intents(account, ids);
    const unknown = intents.filter((intent) => isUnknown(intent, Date.now()));
    const oldest = Math.min(...unknown.map(({ startedAtMs }) => startedAtMs));
    return {
      unknown: unknown.length,
      pending: intents.filter(({ state }) => state === "pending").length,
      ...(unknown.length > 0 && { oldestUnknownMs: oldest }),
    };
  }

  async unsettled(account: string, limit: number): Promise<Unsettled> {
    const { intentsDue, intentsGivenUp } = this.#keys(account);
    const last = String(mostLookedInto - 1);
    const dueAt = scoresOf(
      await this.#reach(this.#client.zrange(intentsDue, "0", last, "WITHSCORES")),
    );
    const givenUp = await this.#reach(this.#client.zrange(intentsGivenUp, "0", last, "REV"));
    const { intents, gone } = await this.#intents(account, [...dueAt.keys(), ...givenUp]);
    const settled = gone.filter((id) => !dueAt.has(id));
    if (settled.length > 0) await this.#reach(this.#client.zrem(intentsGivenUp, ...settled));
    const all = intents.map((intent): UnsettledIntent => {
      const nextLookMs = dueAt.get(intent.id);
      return nextLookMs === undefined ? intent : { ...intent, nextLookMs };
    });
    return unsettledOf(all, limit, Date.now());
  }

  async lease(account: string, holder: string, ttlMs: number): Promise<boolean> {
    const on = [this.#keys(account).reconciler];
    const answer = await this.#reach(scripts.lease.run(this.#client, on, [holder, String(ttlMs)]));
    return answer === 1;
  }

  /** One last try to write what could not be written. */
  async close(): Promise<void> {
    await this.#outbox.close();
  }

  async #begin(account: string, given: NewIntent): Promise<Begun> {
    const { giveUpMs } = this.#options;
    const exclusive = given.exclusive ? "1" : "0";
    const { digest = "", fingerprints = [] } = given.key ?? {};
    const limits = [given.leaseMs, giveUpMs, this.#keepMs].map(String);
    const args = [given.id, given.method, String(given.kind), given.externalId, ...limits];
    const answer = (await this.#reach(
      scripts.begin.runBuffer(this.#client, this.#keysOf(account, given, digest), [
        ...args,
        exclusive,
        digest,
        String(keyRetentionMs),
        ...fingerprints,
      ]),
    )) as Buffer[];
    const [kind, value = Buffer.alloc(0), answered = Buffer.from("[]")] = answer;
    switch (String(kind)) {
      case "started":
        return { kind: "started", intent: started(given, Number(value), answered) };
      case "keyAnswered":
        return { kind: "keyAnswered", answer: value };
      case "inFlight":
      case "keyReused":
      case "keyRunning":
      case "keyUnknown":
        return { kind: String(kind) as "inFlight" | "keyReused" | "keyRunning" | "keyUnknown" };
      default:
        throw new Error(`begin-intent answered ${kind}`);
    }
  }

  async #beginAlone(account: string, given: NewIntent, cause: unknown): Promise<Begun> {
    const begun = await this.#own.begin(account, given);
    if (begun.kind !== "started") return begun;
    const { intent } = begun;
    this.#outbox.add(() => this.#adopt(account, intent, given.exclusive), cause);
    return begun;
  }

  async #adopt(account: string, intent: Intent, exclusive: boolean): Promise<void> {
    const numbers = [intent.leaseUntilMs, this.#options.giveUpMs, this.#keepMs].map(String);
    await this.#reach(
      scripts.adopt.run(this.#client, this.#keysOf(account, intent), [
        intent.id,
        ...numbers,
        exclusive ? "1" : "0",
        String(intent.startedAtMs),
        ...intentFields(intent),
      ]),
    );
  }

  async #end(account: string, intent: Intent, ending: Ending): Promise<void> {
    const subjectId = ending.state === "unknown" ? "" : (ending.subjectId ?? "");
    const key = ending.state === "unknown" ? "unknown" : ending.key;
    await this.#reach(
      scripts.end.run(this.#client, this.#keysOf(account, intent, intent.keyDigest), [
        intent.id,
        ending.state,
        subjectId,
        String(this.#options.firstLookMs),
        String(mostAnswered),
        typeof key === "string" ? key : "done",
        typeof key === "string" ? "" : key,
      ]),
    );
  }

  /** Undoes a beginning that may not have happened. */
  async #free(account: string, given: NewIntent): Promise<void> {
    const intent = started(given, 0, Buffer.from("[]"));
    await this.#end(account, intent, { state: "closed", key: "free" });
  }

  async #intents(
    account: string,
    ids: readonly string[],
  ): Promise<{ intents: Intent[]; gone: string[] }> {
    if (ids.length === 0) return { intents: [], gone: [] };
    const keys = this.#keys(account);
    const pipeline = this.#client.pipeline();
    for (const id of ids) pipeline.hgetall(keys.intent(id));
    const answers = (await this.#reach(pipeline.exec())) ?? [];
    const intents: Intent[] = [];
    const gone: string[] = [];
    for (const [index, [error, fields]] of answers.entries()) {
      if (error) throw error;
      const intent = readIntent(fields as Record<string, string>);
      if (intent) intents.push(intent);
      else gone.push(ids[index] ?? "");
    }
    return { intents, gone };
  }

  #forget(account: string, intent: Intent): void {
    this.#own.remove(account, intent);
  }

  #keysOf(
    account: string,
    { id, kind, externalId }: Pick<Intent, "id" | "kind" | "externalId">,
    keyDigest = "",
  ): string[] {
    const keys = this.#keys(account);
    const all = [keys.intent(id), keys.intentsDue, keys.intentsOf(String(kind), externalId)];
    return keyDigest === "" ? all : [...all, keys.idempotency(keyDigest)];
  }

  #keys(account: string): AccountKeys {
    return accountKeys(this.#options.prefix, account);
  }

  get #client(): RedisClient {
    return this.#options.client;
  }

  #reach<T>(answer: Promise<T>): Promise<T> {
    return reach(answer, this.#answerMs);
  }
}

const openField = "open:";

/** What ZRANGE WITHSCORES tells, members and scores in turn. */
function scoresOf(members: readonly string[]): Map<string, number> {
  const scores = new Map<string, number>();
  for (let at = 0; at + 1 < members.length; at += 2) {
    scores.set(members[at] ?? "", Number(members[at + 1]));
  }
  return scores;
}

const script = (name: string) => loadScript(new URL(`./${name}.lua`, import.meta.url));
const scripts = {
  begin: script("begin-intent"),
  end: script("end-intent"),
  adopt: script("adopt-intent"),
  due: script("due-intents"),
  postpone: script("postpone-intent"),
  hasten: script("hasten-intents"),
  giveUp: script("give-up-intent"),
  lease: script("lease-reconciler"),
};

function started(given: NewIntent, now: number, answered: Buffer): Intent {
  const { id, method, kind, externalId, leaseMs, key } = given;
  return {
    ...{ id, method, kind, externalId, state: "running", subjectId: "" },
    startedAtMs: now,
    leaseUntilMs: now + leaseMs,
    answered: JSON.parse(String(answered)) as string[],
    ...{ checks: 0, notFound: 0, needsOperator: false, keyDigest: key?.digest ?? "" },
  };
}

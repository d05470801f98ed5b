import { ask, storeAway } from "../../redis/ask.ts";
import type { RedisClient } from "../../redis/connect.ts";
import { within } from "../../redis/deadline.ts";
import { type AccountKeys, accountKeys } from "../../redis/keys.ts";
import { loadScript, type Script } from "../../redis/script.ts";
import { createClientWriter, type Writer } from "../../redis/writer.ts";
import type { Found } from "../late-ending.ts";
import { intentFields, marksOf } from "../record.ts";
import {
  type Begun,
  type Ending,
  endedForMs,
  type Intent,
  type IntentStoreOptions,
  type KeyUse,
  keptBeyondMs,
  keyRetentionMs,
  markOfEnding,
  maxAnswered,
  type NewIntent,
} from "../store.ts";

export interface RedisIntentWritesOptions extends IntentStoreOptions {
  readonly client: RedisClient;
  readonly writer?: Writer;
  readonly prefix: string;
  readonly answerMs: number;
}

/** How an intent is recorded that did not begin in Redis. */
export interface Adoption extends Pick<NewIntent, "leaseMs"> {
  readonly ageMs: number;
  /** How many may be open. Default: any number. */
  readonly max?: number;
}

/** Writes intents to Redis: each step is one script. */
export class RedisIntentWrites {
  readonly #options: RedisIntentWritesOptions;
  readonly #keepMs: number;
  readonly #writer: Writer;
  /** By account: how far Redis's clock is ahead of ours. */
  readonly #aheadMs = new Map<string, number>();

  constructor(options: RedisIntentWritesOptions) {
    this.#options = options;
    this.#keepMs = options.giveUpMs + keptBeyondMs;
    this.#writer = options.writer ?? createClientWriter(options.client, options.answerMs);
  }

  /**
   * Begins a call; resolves once the replicas that the writer waits for hold its intent.
   * @throws GatewayError UNAVAILABLE: it may have begun even so.
   */
  async begin(account: string, given: NewIntent): Promise<Begun> {
    const { giveUpMs, answerMs } = this.#options;
    const { digest = "", otherDigests = [], fingerprints = [] } = given.key ?? {};
    const limits = [given.leaseMs, giveUpMs, this.#keepMs].map(String);
    const args = [given.id, given.method, String(given.kind), given.externalId, ...limits];
    const on = this.#keysOf(account, given, digest);
    for (const other of otherDigests) on.push(this.#keys(account).idempotency(other));
    args.push(digest, String(keyRetentionMs), ...fingerprints);
    const written = await within(
      answerMs + replicasMs,
      this.#writer.attempt(scripts.begin, on, args),
    ).catch((error) => {
      throw storeAway(error, this.#client);
    });
    const [kind, value = "", answered] = written.answer as string[];
    switch (kind) {
      case "started":
        // A replaced primary would answer the same, while its successor has another call open.
        if (written.missing) throw storeAway(written.missing);
        this.hearClock(account, Number(value));
        return { kind: "started", intent: startedIntent(given, Number(value), marksOf(answered)) };
      case "keyAnswered":
        return { kind: "keyAnswered", answer: Buffer.from(value, "base64") };
      case "inFlight":
        this.hearClock(account, Number(value));
        return { kind: "inFlight" };
      case "keyReused":
      case "keyRunning":
      case "keyUnknown":
        return { kind };
      case "ended":
        // The call began, but this process was suspended until another one ended the call.
        throw storeAway(new Error("the call was taken for lost while it began"));
      default:
        throw new Error(`begin-intent answered ${kind}`);
    }
  }

  /**
   * Records an intent that began without Redis, that Redis has lost, or that no call of ours made.
   * @returns false if there are too many
   */
  async adopt(
    account: string,
    intent: Intent,
    { ageMs, leaseMs, max = 0 }: Adoption,
  ): Promise<boolean> {
    const leftMs = Math.max(leaseMs - ageMs, 0);
    const { giveUpMs } = this.#options;
    const times = [ageMs, leftMs, leftMs, giveUpMs, this.#keepMs].map((ms) => ms.toFixed(0));
    // A call that has its answer holds no lock.
    const limits = [intent.state === "pending" ? "" : intent.method, String(max)];
    const args = [intent.id, ...times, ...limits, ...intentFields(intent)];
    const on = this.#keysOf(account, intent);
    return (await this.#write(scripts.adopt, on, args)) === 1;
  }

  /**
   * Records an ending; resolves once the replicas that the writer waits for hold it. If a failover
   * lost the ending, a call that was never sent could be reported as unknown.
   * @param key the call's use of its key, which is stored again if it was lost
   * @param isPublished whether the outcome of a late ending is published: before, it is not written
   */
  async end(
    account: string,
    intent: Intent,
    ending: Ending,
    key: KeyUse | undefined,
    isPublished = false,
  ): Promise<Found> {
    const mark = markOfEnding(ending);
    const keyEnding = ending.state === "unknown" ? "unknown" : ending.key;
    const args = [
      ...[intent.id, ending.state, ending.state === "pending" ? ending.subjectId : ""],
      ...[String(this.#options.firstLookMs), String(endedForMs)],
      ...[mark === undefined ? "0" : "1", mark ?? "", String(maxAnswered)],
      ...(typeof keyEnding === "string" ? [keyEnding, ""] : ["done", keyEnding.toString("base64")]),
      ...[key?.fingerprints[0] ?? "", String(keyRetentionMs), intent.method],
      isPublished ? "1" : "0",
    ];
    const on = this.#keysOf(account, intent, intent.keyDigest);
    const known = await this.#write(scripts.end, on, args);
    return known === 0 ? undefined : known === 2 ? "late" : "inTime";
  }

  /** Releases the lock and keeps the intent for an operator. */
  async giveUp(account: string, intent: Intent): Promise<void> {
    const on = [...this.#keysOf(account, intent), this.#keys(account).intentsGivenUp];
    const args = [intent.id, String(this.#keepMs), intent.method];
    await this.#ask(() => scripts.giveUp.run(this.#client, on, args));
  }

  nowMs(account: string): number {
    return Date.now() + (this.#aheadMs.get(account) ?? 0);
  }

  hearClock(account: string, nowMs: number): void {
    this.#aheadMs.set(account, nowMs - Date.now());
  }

  close(): void {
    this.#writer.close();
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

  #write(
    on: Script,
    keys: readonly string[],
    args: readonly (string | Buffer)[],
  ): Promise<unknown> {
    const limitMs = this.#options.answerMs + replicasMs;
    return within(limitMs, this.#writer.run(on, keys, args)).catch((error: unknown) => {
      throw storeAway(error, this.#client);
    });
  }

  #ask<T>(question: () => Promise<T>): Promise<T> {
    return ask(this.#client, question, this.#options.answerMs);
  }

  get #client(): RedisClient {
    return this.#options.client;
  }
}

/** How long replicas may take beyond `answerMs` before a write counts as not answered. */
const replicasMs = 1_000;

const file = (name: string) => new URL(`./${name}.lua`, import.meta.url);
const script = (name: string) => loadScript(file("locks"), file(name));
const scripts = {
  begin: script("begin-intent"),
  end: script("end-intent"),
  adopt: script("adopt-intent"),
  giveUp: script("give-up-intent"),
};

/** A call that has just begun. */
export function startedIntent(given: NewIntent, now: number, answered: readonly string[]): Intent {
  const { id, method, kind, externalId, leaseMs, key } = given;
  return {
    ...{ id, method, kind, externalId, state: "running", subjectId: "", answered },
    startedAtMs: now,
    leaseUntilMs: now + leaseMs,
    ...{ checks: 0, notFound: 0, needsOperator: false, keyDigest: key?.digest ?? "" },
  };
}

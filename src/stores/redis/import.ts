import type { ChainableCommander } from "ioredis";
import type { RedisClient } from "../../redis/connect.ts";
import { within } from "../../redis/deadline.ts";
import type { AccountKeys } from "../../redis/keys.ts";
import type { StoredAccount } from "../sqlite/export.ts";
import { idOfPlace } from "./place.ts";

/** The number of the layout in Redis, as in open-log.lua. */
export const redisLayout = "5";

export interface ImportOptions {
  readonly client: RedisClient;
  readonly keys: AccountKeys;
  readonly retentionMs: number;
  readonly nowMs: number;
}

/** Whether Redis has anything of an account but an empty log, as a gateway that was started leaves. */
export async function hasAccount({ client, keys }: Pick<ImportOptions, "client" | "keys">) {
  const tail = await within(answerMs, client.hget(keys.log, "tail"));
  return tail !== null && tail !== "0-0";
}

/**
 * Imports an account from another store: events under the same cursors, records and indexes.
 * The head of the log is written last: until then the log is empty in Redis, and the next
 * import overwrites what an interrupted one left.
 * @returns how many events there are, records by the first word of their key, and members by index
 */
export async function importAccount(account: StoredAccount, options: ImportOptions) {
  const { client, keys, retentionMs, nowMs } = options;
  const { epoch, instant } = account;
  const portions = new Portions(client);
  const counts = { events: 0, records: {} as Counts, members: {} as Counts };
  await portions.add((pipeline) => pipeline.del(keys.events));
  // Each event carries the id of the one before it; see open-log.lua.
  let before = idOfPlace(account.floor);
  for (const { place, topic: name, bytes } of account.events()) {
    const [id, topic] = [idOfPlace(place), keys.topic(name)];
    await portions.add((pipeline) =>
      pipeline
        .xadd(keys.events, id, "p", before, "e", Buffer.from(bytes))
        .zadd(topic, 0, memberOf(id))
        .pexpire(topic, retentionMs),
    );
    before = id;
    counts.events++;
  }
  await portions.add((pipeline) => pipeline.pexpire(keys.events, retentionMs));
  // In the format of commit.lua.
  for (const { key: name, version, text, until_ms, parts } of account.records()) {
    const leftMs = Math.ceil(until_ms - nowMs);
    if (leftMs <= 0) continue;
    count(counts.records, name.split(":", 1).join());
    const key = keys.record(name);
    const fields: (string | Buffer)[] = ["v", version, "t", text];
    for (const { name, value } of parts) {
      fields.push(name, typeof value === "string" ? value : Buffer.from(value));
    }
    await portions.add((pipeline) =>
      pipeline
        .del(key)
        .hset(key, ...fields)
        .pexpire(key, leftMs),
    );
  }
  for (const { index, member, score } of account.members()) {
    await portions.add((pipeline) => pipeline.zadd(keys.index(index), score, member));
    count(counts.members, index);
  }
  // Nothing of it may be lacking.
  await portions.send();
  const head = { epoch, tail: idOfPlace(account.tail), instant, layout: redisLayout };
  await portions.add((pipeline) => pipeline.hset(keys.log, head).hdel(keys.log, "mark"));
  await portions.send();
  return counts;
}

type Counts = Record<string, number>;

function count(counts: Counts, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

/** Same as member_of in open-log.lua. */
function memberOf(id: string): string {
  const [ms = "", seq = ""] = id.split("-");
  return `${ms.padStart(15, "0")}-${seq.padStart(8, "0")}`;
}

const answerMs = 2_000;

const portion = 500;
const portionMs = 10_000;

/** Sends many commands in their order, 500 at a time. All their keys must share a slot. */
class Portions {
  readonly #client: RedisClient;
  #pipeline: ChainableCommander;

  constructor(client: RedisClient) {
    this.#client = client;
    this.#pipeline = client.pipeline();
  }

  /** @throws as `send` */
  async add(commands: (pipeline: ChainableCommander) => unknown): Promise<void> {
    commands(this.#pipeline);
    if (this.#pipeline.length >= portion) await this.send();
  }

  /** @throws the first error that Redis answers, or RedisTimeout */
  async send(): Promise<void> {
    const answers = await within(portionMs, this.#pipeline.exec());
    for (const [error] of answers ?? []) if (error) throw error;
    this.#pipeline = this.#client.pipeline();
  }
}

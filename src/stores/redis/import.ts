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
  const { client, keys } = options;
  await inPortions(client, [(pipeline) => pipeline.del(keys.events)]);
  const counts: Counts = { events: 0, records: {}, members: {} };
  await inPortions(client, events(account, options, counts));
  await inPortions(client, records(account, options, counts));
  await inPortions(client, members(account, options, counts));
  const { epoch, instant } = account;
  const head = { epoch, tail: idOfPlace(account.tail), instant, layout: redisLayout };
  await inPortions(client, [(pipeline) => pipeline.hset(keys.log, head).hdel(keys.log, "mark")]);
  return counts;
}

interface Counts {
  events: number;
  readonly records: Record<string, number>;
  readonly members: Record<string, number>;
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

/** Each event carries the id of the one before it; see open-log.lua. */
function* events(
  account: StoredAccount,
  { keys, retentionMs }: ImportOptions,
  counts: Counts,
): Generator<Add> {
  let before = idOfPlace(account.floor);
  for (const { place, topic: name, bytes } of account.events()) {
    const id = idOfPlace(place);
    const previous = before;
    const topic = keys.topic(name);
    yield (pipeline) =>
      pipeline
        .xadd(keys.events, id, "p", previous, "e", Buffer.from(bytes))
        .zadd(topic, 0, memberOf(id))
        .pexpire(topic, retentionMs);
    before = id;
    counts.events++;
  }
  yield (pipeline) => pipeline.pexpire(keys.events, retentionMs);
}

/** In the format of commit.lua. */
function* records(
  account: StoredAccount,
  { keys, nowMs }: ImportOptions,
  counts: Counts,
): Generator<Add> {
  for (const { key: name, version, text, untilMs, attachments, flags } of account.records()) {
    const leftMs = Math.ceil(untilMs - nowMs);
    if (leftMs <= 0) continue;
    count(counts.records, name.split(":", 1).join());
    const key = keys.record(name);
    const fields: (string | Buffer)[] = ["v", version, "t", text];
    for (const { name: of, bytes } of attachments) fields.push(`a:${of}`, Buffer.from(bytes));
    for (const { name: of, value } of flags) fields.push(`f:${of}`, value);
    yield (pipeline) =>
      pipeline
        .del(key)
        .hset(key, ...fields)
        .pexpire(key, leftMs);
  }
}

function* members(account: StoredAccount, { keys }: ImportOptions, counts: Counts): Generator<Add> {
  for (const { index, member, score } of account.members()) {
    yield (pipeline) => pipeline.zadd(keys.index(index), score, member);
    count(counts.members, index);
  }
}

/** Same as member_of in open-log.lua. */
function memberOf(id: string): string {
  const [ms = "", seq = ""] = id.split("-");
  return `${ms.padStart(15, "0")}-${seq.padStart(8, "0")}`;
}

const answerMs = 2_000;

/** Adds commands to a pipeline. */
type Add = (pipeline: ChainableCommander) => unknown;

const portion = 500;
const portionMs = 10_000;

/**
 * Sends many commands in their order, 500 at a time. All their keys must share a slot.
 * @throws the first error that Redis answers, or RedisTimeout
 */
async function inPortions(client: RedisClient, commands: Iterable<Add>): Promise<void> {
  let pipeline = client.pipeline();
  const send = async () => {
    const answers = await within(portionMs, pipeline.exec());
    for (const [error] of answers ?? []) if (error) throw error;
    pipeline = client.pipeline();
  };
  for (const add of commands) {
    add(pipeline);
    if (pipeline.length >= portion) await send();
  }
  if (pipeline.length > 0) await send();
}

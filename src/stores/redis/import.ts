import type { DatabaseSync } from "node:sqlite";
import { within } from "../../net/timer.ts";
import type { RedisClient } from "../../redis/connect.ts";
import type { AccountKeys } from "../../redis/keys.ts";
import { firstPlace, positionOf } from "../cursor.ts";
import type { AccountRow } from "../sqlite/operations.ts";

/** The number of the layout in Redis, as in open-log.lua. */
export const redisLayout = "6";

export interface ImportOptions {
  readonly client: RedisClient;
  readonly keys: AccountKeys;
  readonly retentionMs: number;
  readonly nowMs: number;
}

/** Whether Redis has anything of an account but an empty log, as a gateway that was started leaves. */
export async function hasAccount({ client, keys }: Pick<ImportOptions, "client" | "keys">) {
  const tail = await within(answerMs, client.hget(keys.log, "tail"));
  return tail !== null && tail !== firstPlace;
}

/** The accounts in the database of the embedded store. */
export function accountsIn(database: DatabaseSync): AccountRow[] {
  return database.prepare("SELECT * FROM accounts ORDER BY name").all() as unknown as AccountRow[];
}

/**
 * Imports an account from the embedded store: events under the same cursors, records and indexes.
 * The head of the log is written last: until then the log is empty in Redis, and the next
 * import overwrites what an interrupted one left.
 * @returns how many events there are, records by the first word of their key, and members by index
 */
export async function importAccount(
  database: DatabaseSync,
  { id: account, epoch, floor, tail, instant }: AccountRow,
  { client, keys, retentionMs, nowMs }: ImportOptions,
) {
  const rows = <Row>(text: string, ...values: (string | number)[]) =>
    database.prepare(text).iterate(...values) as unknown as Iterable<Row>;
  const counts = { events: 0, records: {} as Counts, members: {} as Counts };
  let pipeline = client.pipeline();
  /** Sends what waits, if it is enough. All its keys share a slot. */
  const send = async (least = portion) => {
    if (pipeline.length < least) return;
    const answers = await within(portionMs, pipeline.exec());
    for (const [error] of answers ?? []) if (error) throw error;
    pipeline = client.pipeline();
  };
  pipeline.del(keys.events);
  // Each event carries the place of the one before it; see open-log.lua.
  let before = floor;
  const events = "SELECT place, topic, bytes FROM events WHERE account = ? ORDER BY place";
  for (const { place, topic: name, bytes } of rows<EventRow>(events, account)) {
    const topic = keys.topic(name);
    pipeline
      .xadd(keys.events, positionOf(place).join("-"), "p", before, "e", Buffer.from(bytes))
      .zadd(topic, 0, place)
      .pexpire(topic, retentionMs);
    before = place;
    counts.events++;
    await send();
  }
  pipeline.pexpire(keys.events, retentionMs);
  // In the format of commit.lua.
  const records = "SELECT key, version, text, until_ms FROM records WHERE account = ?";
  for (const { key: name, version, text, until_ms } of rows<RecordRow>(records, account)) {
    const leftMs = Math.ceil(until_ms - nowMs);
    if (leftMs <= 0) continue;
    count(counts.records, name.split(":", 1).join());
    const key = keys.record(name);
    const fields: (string | Buffer)[] = ["v", version, "t", text];
    const parts = "SELECT name, value FROM parts WHERE account = ? AND key = ?";
    for (const { name: part, value } of rows<PartRow>(parts, account, name)) {
      fields.push(part, typeof value === "string" ? value : Buffer.from(value));
    }
    pipeline
      .del(key)
      .hset(key, ...fields)
      .pexpire(key, leftMs);
    await send();
  }
  const members = "SELECT name, member, score FROM members WHERE account = ? ORDER BY score";
  for (const { name, member, score } of rows<MemberRow>(members, account)) {
    pipeline.zadd(keys.index(name), score, member);
    count(counts.members, name);
    await send();
  }
  // Nothing of it may be lacking.
  await send(0);
  pipeline.hset(keys.log, { epoch, tail, mark: tail, instant, layout: redisLayout });
  await send(0);
  return counts;
}

type Row<Text extends string, Others = unknown> = Readonly<Record<Text, string>> & Readonly<Others>;
type EventRow = Row<"place" | "topic", { bytes: Uint8Array }>;
type RecordRow = Row<"key" | "version" | "text", { until_ms: number }>;
type PartRow = Row<"name", { value: string | Uint8Array }>;
type MemberRow = Row<"name" | "member", { score: number }>;

type Counts = Record<string, number>;

function count(counts: Counts, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

const answerMs = 2_000;

/** How many commands are sent at a time. */
const portion = 500;
const portionMs = 10_000;

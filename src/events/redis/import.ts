import type { RedisClient } from "../../redis/connect.ts";
import { type Add, inPortions } from "../../redis/in-portions.ts";
import type { AccountKeys } from "../../redis/keys.ts";
import type { StoredAccount } from "../sqlite/export.ts";
import type { StateFacts } from "../sqlite/rows.ts";
import { idOfPlace } from "./place.ts";
import { named } from "./store.ts";

export interface ImportOptions {
  readonly client: RedisClient;
  readonly keys: AccountKeys;
  readonly retentionMs: number;
  readonly nowMs: number;
}

/**
 * Imports an account's log from another store: events under the same cursors, states, digests of
 * repeats, unfinished operations and dead letters. The head of the log is written last: until then
 * the log does not exist in Redis, and the next import overwrites what an interrupted one left.
 * @returns the number of events and of dead letters
 */
export async function importAccount(
  account: StoredAccount,
  options: ImportOptions,
): Promise<{ events: number; letters: number }> {
  const { client, keys } = options;
  await inPortions(client, [(pipeline) => pipeline.del(keys.events)]);
  const counts = { events: 0, letters: 0 };
  await inPortions(client, events(account, options, counts));
  await inPortions(client, subjects(account, options));
  await inPortions(client, seen(account, options));
  await inPortions(client, unfinished(account, options));
  await inPortions(client, letters(account, options, counts));
  const tail = idOfPlace(account.tail);
  await inPortions(client, [(pipeline) => pipeline.hset(keys.log, { epoch: account.epoch, tail })]);
  return counts;
}

/** Each event carries the id of the one before it; see open-log.lua. */
function* events(
  account: StoredAccount,
  { keys, retentionMs }: ImportOptions,
  counts: { events: number },
): Generator<Add> {
  let before = idOfPlace(account.floor);
  for (const { place, kind, externalId, bytes, state } of account.events()) {
    const id = idOfPlace(place);
    const previous = before;
    const topic = keys.topic(...named({ kind, externalId }));
    yield (pipeline) =>
      pipeline
        .xadd(keys.events, id, "p", previous, "e", Buffer.from(bytes), "f", `${state}`)
        .zadd(topic, 0, memberOf(id))
        .pexpire(topic, retentionMs);
    before = id;
    counts.events++;
  }
  yield (pipeline) => pipeline.pexpire(keys.events, retentionMs);
}

function* subjects(
  account: StoredAccount,
  { keys, retentionMs, nowMs }: ImportOptions,
): Generator<Add> {
  for (const subject of account.subjects()) {
    const { kind, externalId, last, touchedMs, states, known, holds, folded } = subject;
    const leftMs = touchedMs + 2 * retentionMs - nowMs;
    if (leftMs <= 0) continue;
    const key = keys.state(...named({ kind, externalId }));
    const fields: Record<string, string | Buffer> = {
      // An external id with nothing but a noted hold has no event.
      ...(last !== "" && { last: idOfPlace(last), folded: `${folded}` }),
      // Without facts, readers derive them from the states.
      ...(known !== "[]" && { facts: known }),
      ...(holds !== "[]" && { holds }),
    };
    for (const { key: name, facts, bytes } of states) {
      fields[name] = JSON.stringify(storedFacts(facts));
      fields[`e${name}`] = Buffer.from(bytes);
    }
    yield (pipeline) => pipeline.del(key).hset(key, fields).pexpire(key, leftMs);
  }
}

/** A state as append-event.lua writes it. */
function storedFacts({ rank, status, operationId, since, place }: StateFacts) {
  const ids = { since: idOfPlace(since), id: idOfPlace(place) };
  return { rank, status, operation_id: operationId, ...ids };
}

function* seen(
  account: StoredAccount,
  { keys, retentionMs, nowMs }: ImportOptions,
): Generator<Add> {
  for (const { of, digest, teller, seenMs } of account.seen()) {
    const leftMs = seenMs + retentionMs - nowMs;
    if (leftMs <= 0) continue;
    if (of === "body") yield (pipeline) => pipeline.set(keys.seenBody(digest), "", "PX", leftMs);
    else yield (pipeline) => pipeline.set(keys.seenIdentity(digest), teller, "PX", leftMs);
  }
}

function* unfinished(account: StoredAccount, { keys, retentionMs }: ImportOptions): Generator<Add> {
  for (const { member, sinceMs } of account.unfinished()) {
    yield (pipeline) =>
      pipeline.zadd(keys.unfinished, sinceMs, member).pexpire(keys.unfinished, 2 * retentionMs);
  }
}

function* letters(
  account: StoredAccount,
  { keys }: ImportOptions,
  counts: { letters: number },
): Generator<Add> {
  let size = 0;
  for (const { place, id, kind, reason, receivedMs: receivedAtMs, body } of account.letters()) {
    const text = Buffer.from(body).toString("base64");
    size += text.length;
    counts.letters++;
    const letter = JSON.stringify({ id, kind, reason, receivedAtMs, body: text, sealed: true });
    yield (pipeline) =>
      pipeline.hset(keys.deadLetters, id, letter).zadd(keys.deadLetterOrder, place, id);
  }
  if (size > 0) yield (pipeline) => pipeline.set(keys.deadLetterSize, size);
}

/** Same as member_of in open-log.lua. */
function memberOf(id: string): string {
  const [ms = "", seq = ""] = id.split("-");
  return `${ms.padStart(15, "0")}-${seq.padStart(8, "0")}`;
}

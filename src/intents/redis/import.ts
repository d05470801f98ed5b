import type { RedisClient } from "../../redis/connect.ts";
import { type Add, inPortions } from "../../redis/in-portions.ts";
import { accountKeys } from "../../redis/keys.ts";
import { intentFields } from "../record.ts";
import type { IntentRow, KeyRow, Rows, SubjectRow } from "../sqlite/rows.ts";
import { keptBeyondMs, keyRetentionMs } from "../store.ts";

export interface ImportIntentsOptions {
  readonly client: RedisClient;
  readonly prefix: string;
  readonly giveUpMs: number;
  readonly nowMs: number;
}

/** Imports intents, locks and keys from another store; a repeat changes nothing. */
export async function importIntents(rows: Rows, options: ImportIntentsOptions): Promise<void> {
  const commands = [
    ...rows.intents.map((row) => ({ account: row.account, add: intent(row, options) })),
    ...rows.subjects.map((row) => ({ account: row.account, add: subject(row, options) })),
    ...rows.keys.map((row) => ({ account: row.account, add: key(row, options) })),
  ];
  // The Redis keys of one account share a slot, those of several do not.
  for (const [, own] of Map.groupBy(commands, ({ account }) => account)) {
    await inPortions(
      options.client,
      own.map(({ add }) => add),
    );
  }
}

function intent(
  { account, id, kept }: IntentRow,
  { prefix, giveUpMs, nowMs }: ImportIntentsOptions,
): Add {
  const keys = accountKeys(prefix, account);
  return (pipeline) => {
    if (!kept) return;
    const { intent: call, dueMs } = kept;
    const keepMs = Math.max(Math.ceil(call.startedAtMs + giveUpMs + keptBeyondMs - nowMs), 1);
    const name = keys.intent(id);
    const of = keys.intentsOf(String(call.kind), call.externalId);
    pipeline
      .hset(name, "started", whole(call.startedAtMs), "until", whole(call.leaseUntilMs))
      .hset(name, ...intentFields(call))
      .pexpire(name, keepMs)
      .hset(of, `open:${id}`, whole(call.startedAtMs));
    if (call.needsOperator) {
      pipeline.hset(name, "needs_operator", "1").zadd(keys.intentsGivenUp, nowMs, id);
      pipeline.pexpire(keys.intentsGivenUp, giveUpMs + keptBeyondMs);
    } else {
      pipeline.zadd(keys.intentsDue, whole(dueMs), id);
      pipeline.pexpire(keys.intentsDue, giveUpMs + keptBeyondMs);
    }
  };
}

function subject(
  { account, kind, externalId, kept }: SubjectRow,
  { prefix, giveUpMs }: ImportIntentsOptions,
): Add {
  const name = accountKeys(prefix, account).intentsOf(String(kind), externalId);
  return (pipeline) => {
    if (!kept) return;
    pipeline.hset(name, "answered", JSON.stringify(kept.answered));
    // In the format of locks.lua.
    const byMethod = Map.groupBy(kept.locks, ([, { method }]) => method);
    for (const [method, locks] of byMethod) {
      const untils = locks.map(([id, { untilMs }]) => [id, whole(untilMs)] as const);
      pipeline.hset(name, `lock:${method}`, JSON.stringify(Object.fromEntries(untils)));
    }
    pipeline.pexpire(name, giveUpMs + keptBeyondMs);
  };
}

function key({ account, digest, kept }: KeyRow, { prefix, nowMs }: ImportIntentsOptions): Add {
  const name = accountKeys(prefix, account).idempotency(digest);
  return (pipeline) => {
    if (!kept) return;
    const leftMs = kept.sinceMs + keyRetentionMs - nowMs;
    if (leftMs <= 0) return;
    const { fingerprint, intentId: id, leaseUntilMs, outcome } = kept;
    const state = typeof outcome === "string" ? outcome : "done";
    pipeline.hset(name, { fingerprint, id, state, until: whole(leaseUntilMs) });
    if (typeof outcome !== "string") {
      pipeline.hset(name, "answer", Buffer.from(outcome).toString("base64"));
    }
    pipeline.pexpire(name, Math.ceil(leftMs));
  };
}

function whole(ms: number): string {
  return String(Math.ceil(ms));
}

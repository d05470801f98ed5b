import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { it, type TestContext } from "node:test";
import type { Redis } from "ioredis";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import type { NewIntent } from "../../src/ledger/intents.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { MoneyMethod } from "../../src/model/money-methods.ts";
import { deriveKeyring } from "../../src/secrets/keyring.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { redisLayout } from "../../src/stores/redis/import.ts";
import { migrations } from "../../src/stores/sqlite/schema.ts";
import { openStoreThread } from "../../src/stores/sqlite/store-thread.ts";
import { createRedisLedger, createSqliteLedger } from "../ledger/create.ts";
import { payment, payout } from "../ledger/entries.ts";
import { lettersOf } from "../ledger/letters.ts";
import { callBegun, callLost } from "../ledger/new-call.ts";
import { closing } from "../of-suite.ts";
import { type Command, commandsOf } from "../redis/dump.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import { connected } from "../redis/suite.ts";
import { directory, inDatabase } from "./sqlite/directories.ts";

/**
 * What each layout of the stores looks like with something in it. Later code must read it. A layout
 * without a fixture gets one here, to be committed; one that is released is never written again.
 */
const fixtures = new URL("../fixtures/layouts/", import.meta.url);

const keyring = await deriveKeyring("shop", [new Secret("password")]);
const century = 100 * 365 * 86_400_000;
/** Of directories; a Redis has a clock of its own, and the fixture lacks its expiry times. */
const now = () => Date.UTC(2026, 0);
const times = { retentionMs: century, firstLookMs: 60_000, giveUpMs: century };
const account = "shop";
const letter = {
  ...{ id: "letter", kind: EventKind.PAYMENT, reason: "is no JSON", receivedAtMs: 1_000 },
  body: Buffer.from("not JSON").toString("base64"),
};
const key = { digest: "digest-of-the-key", fingerprints: ["fingerprint"] };

function call(externalId: string, method: MoneyMethod, kind: NewIntent["kind"]): NewIntent {
  return { id: `call ${externalId}`, method, kind, externalId, leaseMs: 60_000 };
}

/** Leaves something of every sort in a ledger. */
async function fill(ledger: Ledger): Promise<void> {
  const begin = (intent: NewIntent) => callBegun(ledger, account, intent);
  const paid = await begin({ ...call("paid", "CreatePayment", EventKind.PAYMENT), key });
  await ledger.end(
    account,
    paid,
    { state: "closed", mark: "pay-1", key: Buffer.from("the answer") },
    payment({ externalId: "paid", status: "success", source: "response" }),
  );
  await callLost(ledger, account, call("lost", "CreatePayment", EventKind.PAYMENT));
  const pending = await begin(call("payout", "RequestPayout", EventKind.PAYOUT));
  await ledger.end(
    account,
    pending,
    { state: "pending", subjectId: "tx-1", key: "free" },
    payout({ externalId: "payout", status: "pending" }),
  );
  await ledger.letters.addDeadLetter(account, letter);
}

/** Checks that a ledger has what `fill` left, and that it goes on with it. */
async function check(ledger: Ledger): Promise<void> {
  const [event] = await ledger.history(account, EventKind.PAYMENT, "paid", 10);
  assert.equal(event?.state, PaymentState.PAID);
  const again = { ...call("paid", "CreatePayment", EventKind.PAYMENT), id: "again", key };
  const begun = await ledger.begin(account, again);
  assert.ok(begun.kind === "keyAnswered");
  assert.equal(begun.answer.toString(), "the answer");
  assert.deepEqual(await lettersOf(ledger, account), [letter]);

  const open = async (kind: NewIntent["kind"], externalId: string) =>
    (await ledger.known(account, kind, externalId)).calls.map(({ state }) => state);
  const listed = async (kind: NewIntent["kind"], states: PaymentState[] = []) => {
    const selection = { kind, states, needsOperator: undefined, newestFirst: false };
    return (await ledger.list(account, selection, 9)).map(({ externalId }) => externalId);
  };
  assert.deepEqual(await listed(EventKind.PAYMENT), ["paid", "lost"]);
  assert.deepEqual(await listed(EventKind.PAYMENT, [PaymentState.UNKNOWN]), ["lost"]);
  assert.deepEqual(await listed(EventKind.PAYOUT, [PaymentState.PENDING]), ["payout"]);

  assert.deepEqual(await open(EventKind.PAYMENT, "lost"), ["unknown"]);
  assert.deepEqual(await open(EventKind.PAYOUT, "payout"), ["pending"]);
  await ledger.append(
    account,
    payment({ externalId: "lost", paymentId: "pay-2", status: "success" }),
  );
  await ledger.append(account, payout({ externalId: "payout", status: "success" }));
  assert.deepEqual(await open(EventKind.PAYMENT, "lost"), []);
  assert.deepEqual(await open(EventKind.PAYOUT, "payout"), []);

  assert.deepEqual(await listed(EventKind.PAYMENT, [PaymentState.PAID]), ["paid", "lost"]);
  const about: string[] = [];
  const { signal } = new AbortController();
  const events = await ledger.read(account, undefined, "earliest", { signal });
  for await (const { externalId, final } of events) {
    about.push(`${externalId} ${final}`);
    if (about.filter((one) => one.endsWith("true")).length === 3) break;
  }
  assert.deepEqual(about.slice(0, 2), ["paid true", "lost false"]);
  assert.ok(about.includes("lost true") && about.at(-1) === "payout true");
}

/** Runs with the ledger of a directory. */
async function inDirectory(
  directory: string,
  use: (ledger: Ledger) => Promise<void>,
): Promise<void> {
  const thread = await openStoreThread({ directory });
  const ledger = createSqliteLedger({ ...times, thread, now, keyringOf: () => keyring });
  try {
    await use(ledger);
  } finally {
    await ledger.close();
    await thread.close();
  }
}

/** Runs with the ledger in a Redis, and a client for the keys themselves. */
async function inRedis(
  url: string,
  use: (ledger: Ledger, client: Redis) => Promise<void>,
): Promise<void> {
  const redis = await connected(url);
  const ledger = createRedisLedger({ ...times, redis, prefix: "layout", keyringOf: () => keyring });
  try {
    await use(ledger, redis.client as Redis);
  } finally {
    await ledger.close();
    await redis.close();
  }
}

async function loadRedis(client: Redis, commands: readonly Command[]): Promise<void> {
  for (const [name, ...args] of commands) {
    await client.call(name, ...args.map((arg) => Buffer.from(arg, "base64")));
  }
}

/** The statements that make a database. */
function dumpSqlite(database: DatabaseSync): string {
  const pragma = (name: string) =>
    `PRAGMA ${name} = ${Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]};`;
  const tables = database
    .prepare(
      "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'",
    )
    .all() as { name: string; sql: string }[];
  const rows = tables
    .filter(({ sql }) => sql.startsWith("CREATE TABLE"))
    .flatMap(({ name }) =>
      database
        .prepare(`SELECT * FROM ${name}`)
        .all()
        .map((row) => insert(name, row)),
    );
  const statements = [...tables.map(({ sql }) => `${sql};`), ...rows];
  return [pragma("application_id"), pragma("user_version"), ...statements, ""].join("\n");
}

function insert(table: string, row: Record<string, unknown>): string {
  const values = Object.values(row).map((value) => {
    if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString("hex")}'`;
    return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value);
  });
  return `INSERT INTO ${table} (${Object.keys(row).join(", ")}) VALUES (${values.join(", ")});`;
}

/** The fixtures with this beginning; writes that of `today` if there is none, and fails. */
async function kept(
  beginning: string,
  today: string,
  write: () => Promise<string>,
): Promise<string[]> {
  const isMissing = !existsSync(new URL(today, fixtures));
  if (isMissing) writeFileSync(new URL(today, fixtures), await write());
  assert.ok(!isMissing, `test/fixtures/layouts/${today} was missing: commit it`);
  return globSync(`${beginning}*`, { cwd: fixtures })
    .map((name) => basename(name))
    .sort();
}

/** A directory whose database these statements make. */
function directoryOf(t: TestContext, name: string): string {
  const path = directory(t);
  inDatabase(path, (database) => database.exec(readFileSync(new URL(name, fixtures), "utf8")));
  return path;
}

it("every layout of a directory is read", async (t) => {
  const names = await kept("sqlite-", `sqlite-${migrations.length}.sql`, async () => {
    const path = directory(t);
    await inDirectory(path, fill);
    return inDatabase(path, dumpSqlite);
  });
  for (const name of names) await inDirectory(directoryOf(t, name), check);
});

it("every layout in Redis is read", { skip: withoutRedis }, async (t) => {
  const server = closing(t, await startRedis());
  const names = await kept("redis-", `redis-${redisLayout}.jsonl`, async () => {
    let commands: Command[] = [];
    await inRedis(server.url, async (ledger, client) => {
      await fill(ledger);
      commands = await commandsOf(client);
    });
    return commands.map((command) => `${JSON.stringify(command)}\n`).join("");
  });
  for (const name of names) {
    await server.command("FLUSHALL");
    const lines = readFileSync(new URL(name, fixtures), "utf8").trimEnd().split("\n");
    const commands = lines.map((line) => JSON.parse(line) as Command);
    await inRedis(server.url, async (ledger, client) => {
      await loadRedis(client, commands);
      await check(ledger);
    });
  }
});

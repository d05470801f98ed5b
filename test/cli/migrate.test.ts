import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import type { Ending, NewIntent } from "../../src/ledger/intents.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { allKinds } from "../../src/model/kinds.ts";
import { cursors, payment, payout, snapshotOf, take } from "../ledger/entries.ts";
import { lettersOf } from "../ledger/letters.ts";
import { createRedisCalls, replica } from "../ledger/redis/rig.ts";
import { openIntents, openLog } from "../ledger/sqlite/rig.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { openCalls } from "../open-calls.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import { connected } from "../redis/suite.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { run } from "./resident.ts";

describe("payments-gateway migrate", { skip: withoutRedis }, () => {
  const redis = ofSuite(startRedis);

  const { signal } = new AbortController();

  const letter = {
    ...{ id: "l-1", kind: EventKind.PAYMENT, reason: "the body is not JSON", receivedAtMs: 1 },
    body: Buffer.from("<html>").toString("base64"),
  };

  const call = (name: string): NewIntent => ({
    ...{ id: `call-${name}`, method: "CreatePayment", kind: EventKind.PAYMENT, externalId: name },
    leaseMs: 600_000,
    key: { digest: `key-${name}`, fingerprints: ["f"] },
  });

  async function fill(log: Ledger, intents: Ledger) {
    const first = await log.append("shop", payment({ status: "pending" }));
    await log.append("shop", payment({ status: "success" }));
    await log.append("shop", payment({ operation: "refund", source: "response" }));
    await log.append("shop", payout({ status: "processing" }));
    await log.append("market", payment({ externalId: "order-2", paymentId: "p-2" }));
    await log.letters.addDeadLetter("shop", letter);
    const endings: Record<string, Ending | undefined> = {
      running: undefined,
      unknown: { state: "unknown" },
      pending: { state: "pending", subjectId: "p-3", key: "keep" },
      answered: { state: "closed", mark: "p-4", key: Buffer.from([0, 255, 13]) },
    };
    for (const [name, ending] of Object.entries(endings)) {
      const begun = await intents.begin("shop", call(name));
      assert.ok(begun.kind === "started");
      if (ending) await intents.end("shop", begun.intent, ending);
    }
    const lost = await intents.begin("shop", call("given-up"));
    assert.ok(lost.kind === "started");
    await intents.end("shop", lost.intent, { state: "unknown" });
    await intents.giveUp("shop", lost.intent);
    return first.event?.cursor ?? "";
  }

  const names = ["running", "unknown", "pending", "answered", "given-up"];

  /** What callers see, which must be the same in either store. */
  async function seen(log: Ledger, intents: Ledger, cursor: string) {
    const snapshot = await snapshotOf(log, "shop", EventKind.PAYMENT, "order-1");
    return {
      all: cursors(await take(await log.read("shop", undefined, "earliest", { signal }), 7)),
      behind: cursors(await take(await log.read("shop", undefined, cursor, { signal }), 6)),
      order: cursors(await log.history("shop", EventKind.PAYMENT, "order-1", 10)),
      other: cursors(await take(await log.read("market", undefined, "earliest", { signal }), 1)),
      snapshot: snapshot && {
        ...snapshot,
        states: snapshot.operations.map(({ event, ...state }) => ({ ...state, at: event.cursor })),
      },
      repeat: (await log.append("shop", payment({ status: "success" }))).outcome,
      answer: (await log.append("shop", payment({ operation: "refund", source: "response" })))
        .outcome,
      letters: await lettersOf(log, "shop"),
      listed: await Promise.all(
        allKinds.map((kind) =>
          log.list("shop", { kind, states: [], needsOperator: undefined, newestFirst: true }, 99),
        ),
      ),
      open: await Promise.all(names.map((name) => openCalls(intents, "shop", name))),
      keys: await Promise.all(
        names.map((name) => intents.begin("shop", { ...call(name), id: `again-${name}` })),
      ),
      locks: await Promise.all(
        ["running", "unknown"].map(async (name) => {
          const { key: _, ...keyless } = call(name);
          return (await intents.begin("shop", { ...keyless, id: `once more-${name}` })).kind;
        }),
      ),
      unsettled: (await intents.unsettled("shop")).map(({ id }) => id),
    };
  }

  // Its keys are those of the store in Redis that it is moved to.
  const onDisk = (path: string) => openIntents(path, {}, "shop");

  it("moves all state to Redis, and cursors stay valid", async (t) => {
    const path = join(directory(t), "data");
    const disk = await onDisk(path);
    const cursor = await fill(disk.log, disk.store);
    const before = await seen(disk.log, disk.store, cursor);

    const move = (url: string, env: Record<string, string> = {}) =>
      run(["migrate", "--to", url], { env: { DATA_DIR: path, ...env } });
    const held = await move(redis.url);
    assert.equal(held.code, 1);
    assert.match(held.err, /DATA_DIR: is in use by another gateway/);
    await disk.close();
    const away = await move("redis://127.0.0.1:9");
    assert.equal(away.code, 69);
    assert.match(away.err, /Redis cannot be reached: ECONNREFUSED/);
    const wrong = await move(redis.url.replace("redis://", "redis://nobody:canary@"));
    assert.equal(wrong.code, 69);
    assert.match(wrong.err, /Redis cannot be reached: WRONGPASS/);
    assert.doesNotMatch(wrong.err, /canary/);
    const none = await run(["migrate"], { env: { DATA_DIR: path } });
    assert.equal(none.code, 78);
    // An earlier migration that broke off left this event behind.
    await redis.command("XADD", "pgw:{shop}:events", "1-1", "p", "0", "e", "x");

    const { code, out, err } = await move(redis.url);
    assert.equal(code, 0, err);
    assert.match(out, /^market: 1 events, 0 dead letters\nshop: 7 events, 1 dead letters\n/);
    assert.match(out, /\d open calls, \d uses of Idempotency-Keys\n$/);
    assert.match(err, /^Redis: .*nothing/m, "it keeps nothing on a disk");

    const { log } = closing(t, await replica(redis.url, { prefix: "pgw" }));
    const connection = closing(t, await connected(redis.url));
    const times = { firstLookMs: 60_000, giveUpMs: 3_600_000 };
    const intents = closing(t, createRedisCalls({ redis: connection, prefix: "pgw", ...times }));
    assert.deepEqual(await seen(log, intents, cursor), before);
    const rest = await log.read("shop", undefined, before.all.at(-1) ?? "", { signal });
    const next = await log.append("shop", payment({ operation: "cancel" }));
    assert.deepEqual(cursors(await take(rest, 1)), [next.event?.cursor]);
    await log.letters.removeDeadLetter("shop", "l-1");
    assert.deepEqual(await lettersOf(log, "shop"), []);

    const again = await move(redis.url);
    assert.match(again.err, /DATA_DIR: was moved to Redis at 20/);
    await assert.rejects(openLog(path), /was moved to Redis/);
  });

  it("refuses to run if Redis already has events of an account", async (t) => {
    const path = join(directory(t), "data");
    const disk = await onDisk(path);
    await disk.log.append("shop", payment());
    await disk.close();
    const { log } = closing(t, await replica(redis.url, { prefix: "taken" }));
    await log.append("shop", payment());
    const { code, err } = await run(["migrate"], {
      env: { DATA_DIR: path, REDIS_URL: redis.url, REDIS_PREFIX: "taken" },
    });
    assert.equal(code, 1);
    assert.match(err, /Redis has events of the account shop under the prefix taken already/);
    await (await onDisk(path)).close();
  });
});

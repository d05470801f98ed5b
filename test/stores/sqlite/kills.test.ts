import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Ledger } from "../../../src/ledger/ledger.ts";
import { numbered } from "../../ledger/entries.ts";
import { newCall } from "../../ledger/new-call.ts";
import { openLog } from "../../ledger/sqlite/rig.ts";
import { openCalls } from "../../open-calls.ts";
import { seeded } from "../../random.ts";
import { freshDirectory } from "./directories.ts";

/** What a process promised before it was killed. */
interface Promised {
  /** Cursors of the callbacks that were acknowledged, by external_id. */
  readonly stored: Map<string, string>;
  /** Keys whose calls were sent. */
  readonly sent: Set<string>;
  readonly unknown: Set<string>;
  readonly answered: Set<string>;
  /** Bytes of the write-ahead log that were on the disk, by the last line that was read. */
  syncedBytes: number;
}

/**
 * Kills a process that writes, again and again, and each time cuts off what a loss of power may
 * lose: data that was written and not synced. Asserts after each kill that all it promised is
 * there.
 * @param synchronous OFF: nothing is ever synced, so a loss of power may lose anything
 * @returns how many callbacks and calls were promised in all
 */
async function killAgainAndAgain(options: {
  readonly kills: number;
  readonly seed: number;
  readonly synchronous?: "FULL" | "OFF";
}): Promise<{ stored: number; sent: number }> {
  const { kills, seed, synchronous = "FULL" } = options;
  const { path, remove } = freshDirectory();
  const random = seeded(seed);
  let stored = 0;
  let sent = 0;
  let lastCursor: string | undefined;
  try {
    for (let round = 0; round < kills; round++) {
      const promised = await runAndKill(path, round, random, synchronous);
      losePower(path, promised.syncedBytes, random);
      lastCursor = await check(path, promised, lastCursor);
      stored += promised.stored.size;
      sent += promised.sent.size;
    }
  } finally {
    remove();
  }
  return { stored, sent };
}

async function runAndKill(
  path: string,
  round: number,
  random: () => number,
  synchronous: string,
): Promise<Promised> {
  const script = new URL("./killed-child.ts", import.meta.url).pathname;
  const args = [script, path, `${round}`, `${Math.floor(random() * 2 ** 32)}`, synchronous];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const promised: Promised = {
    ...{ stored: new Map(), sent: new Set(), unknown: new Set(), answered: new Set() },
    syncedBytes: 0,
  };
  const opened = Promise.withResolvers<void>();
  const working = Promise.withResolvers<void>();
  const lines = createInterface(child.stdout).on("line", (line) => {
    const [synced, word, what = "", cursor = ""] = line.split(" ");
    promised.syncedBytes = Number(synced);
    if (word === "open") opened.resolve();
    else if (word === "stored") promised.stored.set(what, cursor);
    else if (word === "sent" || word === "unknown" || word === "answered") promised[word].add(what);
    if (word === "unknown" || word === "answered") working.resolve();
  });
  const closed = Promise.all([once(child, "exit"), once(lines, "close")]);
  // Sometimes it is killed while it opens the store of its predecessor.
  if (random() < 0.1) await Promise.race([opened.promise, delay(random() * 400)]);
  else {
    await Promise.race([working.promise, closed]);
    await delay(random() * 150);
  }
  assert.equal(child.exitCode, null, "it ended by itself");
  child.kill("SIGKILL");
  await closed;
  return promised;
}

/**
 * A write-ahead log of this many bytes may have been copied into the database already: then it was
 * synced before, and nothing of it can be lost.
 */
const copiedBytes = 1_000 * (4_096 + 24);

/** Cuts off a random part of what was written behind the last sync. */
function losePower(path: string, syncedBytes: number, random: () => number): void {
  const wal = join(path, "gateway.sqlite-wal");
  if (!existsSync(wal)) return;
  const { size } = statSync(wal);
  if (size <= syncedBytes || (syncedBytes > 0 && size >= copiedBytes)) return;
  truncateSync(wal, syncedBytes + Math.floor(random() * (size - syncedBytes)));
}

/** @returns the cursor of the last event */
async function check(
  path: string,
  promised: Promised,
  lastCursor: string | undefined,
): Promise<string | undefined> {
  const { store: ledger, close } = await openLog(path);
  try {
    const found = await eventsBehind(ledger, lastCursor);
    const times = new Map<string, number>();
    for (const { externalId } of found) times.set(externalId, (times.get(externalId) ?? 0) + 1);
    for (const [externalId, cursor] of promised.stored) {
      assert.equal(times.get(externalId), 1, `${externalId}: acknowledged, and there once`);
      const event = found.find((one) => one.externalId === externalId);
      assert.equal(event?.cursor, cursor, `${externalId}: under its cursor`);
    }
    for (const id of promised.sent) {
      const key = { digest: id, fingerprints: ["f"] };
      const begun = await ledger.begin("shop", newCall({ externalId: id, key }));
      assert.notEqual(begun.kind, "started", `${id}: sent before, and would be sent again`);
      if (promised.answered.has(id)) {
        assert.deepEqual(begun, { kind: "keyAnswered", answer: Buffer.from(id) });
      }
      if (promised.unknown.has(id)) {
        assert.equal(begun.kind, "keyUnknown");
        const [open] = await openCalls(ledger, "shop", id);
        assert.equal(open?.state, "unknown", `${id}: still unknown`);
        // As the reconciler ends it.
        await ledger.end("shop", open, { state: "closed", key: "keep" });
        assert.deepEqual(await openCalls(ledger, "shop", id), []);
      }
    }
    return found.at(-1)?.cursor ?? lastCursor;
  } finally {
    await close();
  }
}

async function eventsBehind(
  ledger: Ledger,
  cursor: string | undefined,
): Promise<{ externalId: string; cursor: string }[]> {
  // Its number is that of no other event.
  const end = await ledger.append("shop", numbered(Date.now()));
  assert.ok(end.event);
  const found: { externalId: string; cursor: string }[] = [];
  const { signal } = new AbortController();
  for await (const event of await ledger.read("shop", undefined, cursor ?? "earliest", {
    signal,
  })) {
    found.push(event);
    if (event.cursor === end.event.cursor) break;
  }
  return found;
}

/** 1,000 in the long form, `npm run faults`. */
const kills = Number(process.env.KILLS ?? (process.env.FAULTS === "long" ? 1_000 : 6));
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32));
/** For a hang: on a busy machine a kill may take more than ten seconds. */
const timeout = kills * 60_000;

it("acknowledged callbacks and calls survive SIGKILL and a loss of power, each once", {
  timeout,
}, async (t) => {
  t.diagnostic(`SEED=${seed}`);
  const { stored, sent } = await killAgainAndAgain({ kills, seed });
  t.diagnostic(`${kills} kills, ${stored} callbacks and ${sent} calls acknowledged before them`);
  assert.ok(stored > kills && sent > 0, "there was something to lose");
});

it("control: without syncs a loss of power loses acknowledged data", { timeout }, async () => {
  await assert.rejects(
    killAgainAndAgain({ kills: 10, seed, synchronous: "OFF" }),
    /acknowledged, and there once|damaged|would be sent again|still unknown|keyUnknown|keyAnswered|cursor/,
  );
});

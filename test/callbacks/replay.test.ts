import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { replay } from "../../src/callbacks/replay.ts";
import { GatewayError } from "../../src/errors.ts";
import { EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Kind } from "../../src/model/kinds.ts";
import { createMemoryLedger } from "../ledger/create.ts";
import { steps } from "../ledger/entries.ts";
import { lettersOf } from "../ledger/letters.ts";
import { overridden } from "../overridden.ts";

const understood =
  '{"external_id":"order-1","operation":"payment","details":{"payment_id":"p","status":"success"}}';

/** A log with one dead letter, such as one that an older gateway did not understand. */
async function buried(body: string, kind: Kind = EventKind.PAYMENT): Promise<Ledger> {
  const log = createMemoryLedger({ retentionMs: 86_400_000 });
  await bury(log, "letter-1", body, kind);
  return log;
}

const bury = (log: Ledger, id: string, body: string, kind: Kind = EventKind.PAYMENT) =>
  log.letters.addDeadLetter("shop", {
    ...{ id, kind, body: Buffer.from(body).toString("base64") },
    ...{ reason: "not understood then", receivedAtMs: 1 },
  });

describe("replaying a dead letter", () => {
  it("stores the event of a letter that is understood now, and removes the letter", async () => {
    const log = await buried(understood);
    assert.equal(await replay(log, "shop", "letter-1"), "stored");
    const events = await log.history("shop", EventKind.PAYMENT, "order-1", 10);
    assert.deepEqual(steps(events), ["payment:success"]);
    assert.equal(events[0]?.source, EventSource.CALLBACK);
    assert.deepEqual(await lettersOf(log, "shop"), []);
    assert.equal(await replay(log, "shop", "letter-1"), "not_found");
  });

  it("reads a payout's letter as a payout", async () => {
    const body = '{"external_id":"payout-1","transaction_id":"tx-1","status":"success"}';
    const log = await buried(body, EventKind.PAYOUT);
    assert.equal(await replay(log, "shop", "letter-1"), "stored");
    assert.equal((await log.history("shop", EventKind.PAYOUT, "payout-1", 10)).length, 1);
  });

  it("removes a letter whose event is already stored", async () => {
    const log = await buried(understood);
    assert.equal(await replay(log, "shop", "letter-1"), "stored");
    await bury(log, "letter-2", `${understood}\n`);
    assert.equal(await replay(log, "shop", "letter-2"), "duplicate");
    assert.deepEqual(await lettersOf(log, "shop"), []);
  });

  it("keeps a letter that is still not understood", async () => {
    const log = await buried("<html>");
    assert.equal(await replay(log, "shop", "letter-1"), "not_understood");
    assert.equal((await lettersOf(log, "shop")).length, 1);
  });

  it("keeps the letter when its event cannot be stored", async () => {
    const log = await buried(understood);
    const away: Ledger = overridden<Ledger>(log, {
      async append() {
        throw new GatewayError("UNAVAILABLE", "away");
      },
    });
    await assert.rejects(replay(away, "shop", "letter-1"), GatewayError);
    assert.equal((await lettersOf(log, "shop")).length, 1);
  });

  it("does not find a letter of another account", async () => {
    const log = await buried(understood);
    assert.equal(await replay(log, "other", "letter-1"), "not_found");
  });
});

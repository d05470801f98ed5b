/**
 * A process that stores callbacks, and begins and ends calls with keys, until it is killed. Each
 * line that it prints is a promise: an acknowledged callback, or a call sent to or answered by the
 * service.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { openStoreThread } from "../../../src/stores/sqlite/store-thread.ts";
import { payment } from "../../ledger/entries.ts";
import { createSqliteCalls } from "../../ledger/sqlite/rig.ts";
import { seeded } from "../../random.ts";
import { openSeal } from "./open-seal.ts";

const [directory = "", round = "", seed = "", synchronous = "FULL"] = process.argv.slice(2);
const random = seeded(Number(seed));
const thread = await openStoreThread({
  directory,
  synchronous: synchronous as "FULL" | "OFF",
});
const { store: ledger } = createSqliteCalls(thread, {
  retentionMs: 86_400_000,
  keyringOf: () => ({ events: openSeal, deadLetters: openSeal }),
});
/**
 * Prints a promise, after the number of bytes of the write-ahead log that are on the disk by now.
 */
function say(...words: string[]): void {
  const { size } = statSync(join(directory, "gateway.sqlite-wal"), { throwIfNoEntry: false }) ?? {
    size: 0,
  };
  const synced = synchronous === "FULL" ? size : 0;
  process.stdout.write(`${synced} ${words.join(" ")}\n`);
}

async function callbacks(writer: number): Promise<never> {
  for (let i = 0; ; i++) {
    const externalId = `order-${round}-${writer}-${i}`;
    const entry = payment({ externalId, paymentId: externalId });
    const { event } = await ledger.append("shop", entry);
    say("stored", externalId, event?.cursor ?? "");
    if (random() < 0.2) await ledger.append("shop", entry);
  }
}

async function calls(writer: number): Promise<never> {
  for (let i = 0; ; i++) {
    const id = `call-${round}-${writer}-${i}`;
    const begun = await ledger.begin("shop", {
      ...{ id, method: "CreatePayment", kind: EventKind.PAYMENT, externalId: id, leaseMs: 60_000 },
      key: { digest: id, fingerprints: ["f"] },
    });
    if (begun.kind !== "started") throw new Error(`${id}: ${begun.kind}`);
    say("sent", id);
    if (random() < 0.3) {
      await ledger.end("shop", begun.intent, { state: "unknown" });
      say("unknown", id);
    } else {
      await ledger.end("shop", begun.intent, { state: "closed", key: Buffer.from(id) });
      say("answered", id);
    }
  }
}

// Exits if the test ends first.
process.stdin.resume().once("end", () => process.exit());
say("open");
await Promise.all([...[0, 1, 2, 3].map(callbacks), ...[0, 1].map(calls)]);

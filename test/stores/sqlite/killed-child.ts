/**
 * A process that stores callbacks, and begins and ends calls with keys, until it is killed. Each
 * line that it prints is a promise: an acknowledged callback, or a call sent to or answered by the
 * service.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { payment } from "../../ledger/entries.ts";
import { callBegun } from "../../ledger/new-call.ts";
import { openLog } from "../../ledger/sqlite/rig.ts";
import { seeded } from "../../random.ts";

const [directory = "", round = "", seed = "", synchronous = "FULL"] = process.argv.slice(2);
const random = seeded(Number(seed));
const { store: ledger } = await openLog(directory, { synchronous: synchronous as "FULL" | "OFF" });

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
    const key = { digest: id, fingerprints: ["f"] };
    const intent = await callBegun(ledger, "shop", { id, externalId: id, key });
    say("sent", id);
    if (random() < 0.3) {
      await ledger.end("shop", intent, { state: "unknown" });
      say("unknown", id);
    } else {
      await ledger.end("shop", intent, { state: "closed", key: Buffer.from(id) });
      say("answered", id);
    }
  }
}

// Exits if the test ends first.
process.stdin.resume().once("end", () => process.exit());
say("open");
await Promise.all([...[0, 1, 2, 3].map(callbacks), ...[0, 1].map(calls)]);

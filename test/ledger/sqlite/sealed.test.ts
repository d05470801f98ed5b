import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Event, EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { PaymentMethodSchema } from "../../../src/gen/payments/v1/payment_pb.ts";
import type { Entry } from "../../../src/ledger/log.ts";
import type { SqliteLedgerOptions as SqliteLogOptions } from "../../../src/ledger/sqlite.ts";
import { reportTo } from "../../../src/report.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import type { Seal } from "../../../src/secrets/seal.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { freshDirectory } from "../../stores/sqlite/directories.ts";
import { payment, type Told, take } from "../entries.ts";
import { lettersOf } from "../letters.ts";
import { openLog } from "./rig.ts";

const token = "card-token-7f31";
const number = "4716108999716531";

/** A payment whose event has the token of its card. */
function paid(told: Told): Entry {
  const entry = payment({ status: "success", ...told });
  const { resource } = entry.event;
  assert.ok(resource.case === "payment");
  resource.value.paymentMethod = create(PaymentMethodSchema, {
    ccToken: { token, mask: "41**11" },
  });
  return entry;
}

function tokenOf(event: Event | undefined): string | undefined {
  assert.ok(event?.resource.case === "payment");
  assert.equal(event.resource.value.paymentMethod?.ccToken?.mask, "41**11");
  return event.resource.value.paymentMethod.ccToken.token;
}

const letter = (id: string) => ({
  id,
  kind: EventKind.PAYMENT,
  body: Buffer.from(`{"card": {"number": "${number}"}, ${id}`).toString("base64"),
  reason: "the body is not JSON",
  receivedAtMs: 1_700_000_000_000,
});

type KeyringOf = SqliteLogOptions["keyringOf"];

async function keyringOf(...passwords: string[]): Promise<KeyringOf> {
  const keyring = await deriveKeyring(
    "shop",
    passwords.map((password) => new Secret(password)),
  );
  return () => keyring;
}

const plain: Seal = { close: (text) => Buffer.from(text), open: (text) => Buffer.from(text) };
const sealingOff: KeyringOf = () => ({ events: plain, deadLetters: plain });

function directory(t: TestContext): string {
  const { path, remove } = freshDirectory();
  t.after(remove);
  return path;
}

for (const [what, off] of [
  ["neither card tokens nor what could not be read is on the disk in plain", false],
  ["the search for them finds them with sealing off", true],
] as const) {
  it(what, { timeout: 60_000 }, async (t) => {
    const path = directory(t);
    const keys = off ? sealingOff : await keyringOf("password");
    const { log, close } = await openLog(path, { keyringOf: keys });
    await log.append("shop", paid({ status: "pending" }));
    await log.append("shop", paid({}));
    await log.letters.addDeadLetter("shop", letter("l-1"));
    await close();
    const files = readdirSync(path).map((name) => readFileSync(join(path, name), "latin1"));
    assert.ok(
      files.some((text) => text.includes("41**11")),
      "the rest stays readable",
    );
    const shown = [token, number].filter((secret) => files.some((text) => text.includes(secret)));
    assert.deepEqual(shown, off ? [token, number] : []);
  });
}

it("secrets survive a restart and a password change; dropping the old password loses only them", {
  timeout: 60_000,
}, async (t) => {
  const path = directory(t);
  const told = async (keys: KeyringOf) => {
    const locked: string[] = [];
    const { log, close } = await openLog(path, {
      keyringOf: keys,
      report: reportTo({ locked: ({ what }) => void locked.push(what) }),
    });
    const { signal } = new AbortController();
    const events = await take(await log.read("shop", { kinds: [] }, "earliest", { signal }), 1);
    const letters = await lettersOf(log, "shop");
    await close();
    return { token: tokenOf(events[0]), letters, locked };
  };
  const { log, close } = await openLog(path, { keyringOf: await keyringOf("old") });
  await log.append("shop", paid({}));
  await log.letters.addDeadLetter("shop", letter("l-1"));
  await close();

  const rotated = await told(await keyringOf("new", "old"));
  assert.deepEqual(rotated, { token, letters: [letter("l-1")], locked: [] });
  const { body: _, ...locked } = letter("l-1");
  assert.deepEqual(await told(await keyringOf("new")), {
    token: undefined,
    letters: [locked],
    locked: ["event", "dead_letter"],
  });
});

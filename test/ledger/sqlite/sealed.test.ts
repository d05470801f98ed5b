import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Event } from "../../../src/gen/payments/v1/event_pb.ts";
import { reportTo } from "../../../src/report.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import type { Seal } from "../../../src/secrets/seal.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { directory } from "../../stores/sqlite/directories.ts";
import { cardToken, paidByCard, take } from "../entries.ts";
import { letter, lettersOf } from "../letters.ts";
import { openLog } from "./rig.ts";

const number = "4716108999716531";

function tokenOf(event: Event | undefined): string | undefined {
  assert.ok(event?.resource.case === "payment");
  assert.equal(event.resource.value.paymentMethod?.ccToken?.mask, "41**11");
  return event.resource.value.paymentMethod.ccToken.token;
}

const unread = (id: string) =>
  letter(id, Buffer.from(`{"card": {"number": "${number}"}, ${id}`).toString("base64"));

/** Each secret, in plain and in base64 wherever it begins. */
const forms = [cardToken, number].flatMap((secret) => [
  secret,
  ...["", "x", "xy"].map((before) =>
    Buffer.from(before + secret)
      .toString("base64")
      .slice(4, 20),
  ),
]);

/** Encrypts nothing. */
const openSeal: Seal = { close: (text) => Buffer.from(text), open: (text) => Buffer.from(text) };

/** All that the store of this directory holds, as text. */
const heldIn = (path: string) =>
  readdirSync(path)
    .map((name) => readFileSync(join(path, name), "latin1"))
    .join("\n");

/** Opens the store with these passwords, or with sealing off; `locked` is what it reported. */
async function open(path: string, ...passwords: string[]) {
  const locked: string[] = [];
  const secrets = passwords.map((password) => new Secret(password));
  const keyring =
    secrets.length === 0
      ? { events: openSeal, deadLetters: openSeal }
      : await deriveKeyring("shop", secrets);
  const { log, close } = await openLog(path, {
    keyringOf: () => keyring,
    report: reportTo({ locked: ({ account, what }) => void locked.push(`${account} ${what}`) }),
  });
  const { signal } = new AbortController();
  const tokens = async (count: number) => {
    const events = await log.read("shop", undefined, "earliest", { signal });
    return (await take(events, count)).map(tokenOf);
  };
  return { log, close, locked, tokens };
}

/**
 * Who can read what is kept encrypted. Stores get it encrypted; of Redis, gateway/canary.test.ts shows
 * that no secret gets there.
 */
describe("secrets that are encrypted", () => {
  for (const [what, isOff] of [
    ["neither card tokens nor what could not be read is stored in plain", false],
    ["the search for them finds them with sealing off", true],
  ] as const) {
    it(what, async (t) => {
      const path = directory(t);
      const passwords = isOff ? [] : ["password"];
      const { log, close } = await open(path, ...passwords);
      await log.append("shop", paidByCard({ status: "pending" }));
      await log.append("shop", paidByCard());
      await log.append("shop", paidByCard({ operation: "refund" }));
      await log.letters.addDeadLetter("shop", unread("l-1"));
      await close();
      const reader = await open(path, ...passwords);
      assert.deepEqual(await reader.tokens(3), Array(3).fill(cardToken), "readers have them");
      assert.deepEqual(await lettersOf(reader.log, "shop"), [unread("l-1")]);
      assert.deepEqual(reader.locked, []);
      await reader.close();
      const text = heldIn(path);
      assert.match(text, /41\*\*11/, "the rest stays readable");
      const shown = forms.filter((form) => text.includes(form));
      assert.equal(shown.length > 0, isOff, `${shown}`);
    });
  }
});

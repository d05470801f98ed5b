import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { deriveKeyring } from "../../src/secrets/keyring.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { Secret } from "../../src/secrets/secret.ts";

const [key, other] = [randomBytes(32), randomBytes(32)];
const text = Buffer.from("card-token");

test("sealed bytes open with the same key and context, also in another instance", () => {
  const seal = createSeal([key]);
  for (const size of [0, 1, 15, 16, 17, 100_000]) {
    const bytes = randomBytes(size);
    const sealed = seal.close(bytes, "order-1");
    assert.deepEqual(seal.open(sealed, "order-1"), bytes);
    assert.deepEqual(createSeal([key]).open(sealed, "order-1"), bytes);
  }
});

test("sealed bytes do not contain the text, and no two of them are alike", () => {
  const seal = createSeal([key]);
  const sealed = Array.from({ length: 1_000 }, () => seal.close(text, ""));
  assert.ok(sealed.every((bytes) => !bytes.includes(text)));
  const nonces = new Set(sealed.map((bytes) => bytes.subarray(0, 28).toString("hex")));
  assert.equal(nonces.size, sealed.length);
  const salt = (bytes: Buffer) => bytes.subarray(0, 16).toString("hex");
  assert.equal(new Set(sealed.map(salt)).size, 1);
  assert.notEqual(salt(createSeal([key]).close(text, "")), salt(sealed[0] as Buffer));
});

test("sealed bytes do not open with another key, another context or one changed bit", () => {
  const seal = createSeal([key]);
  const sealed = seal.close(text, "order-1");
  assert.equal(createSeal([other]).open(sealed, "order-1"), undefined);
  assert.equal(seal.open(sealed, "order-2"), undefined);
  assert.equal(seal.open(sealed, ""), undefined);
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.equal(seal.open(changed, "order-1"), undefined, `byte ${at}`);
    assert.equal(seal.open(sealed.subarray(0, at), "order-1"), undefined, `${at} bytes`);
  }
  assert.equal(seal.open(Buffer.concat([sealed, text]), "order-1"), undefined);
  assert.deepEqual(seal.open(sealed, "order-1"), text, "unchanged, it opens");
});

test("an earlier key opens sealed bytes but does not seal new ones", () => {
  const [before, now] = [createSeal([key]), createSeal([other, key])];
  assert.deepEqual(now.open(before.close(text, "c"), "c"), text);
  assert.equal(before.open(now.close(text, "c"), "c"), undefined);
});

test("createSeal throws without a key", () => {
  assert.throws(() => createSeal([]), /needs a key/);
});

const ringOf = (account: string, ...passwords: string[]) =>
  deriveKeyring(
    account,
    passwords.map((password) => new Secret(password)),
  );

test("replicas with the same password have the same keys; each account and purpose has its own", async () => {
  const [one, replica, market, changed] = await Promise.all([
    ringOf("shop", "password"),
    ringOf("shop", "password"),
    ringOf("market", "password"),
    ringOf("shop", "passwore"),
  ]);
  const sealed = one.events.close(text, "c");
  assert.deepEqual(replica.events.open(sealed, "c"), text);
  for (const seal of [market.events, changed.events, one.answers, one.deadLetters]) {
    assert.equal(seal.open(sealed, "c"), undefined);
  }
  assert.deepEqual(one.fingerprints(text), replica.fingerprints(text));
  assert.notDeepEqual(one.fingerprints(text), market.fingerprints(text));
  assert.notDeepEqual(one.fingerprints(text), one.fingerprints(Buffer.from("card-toker")));
});

test("previous passwords still open answers, and still give a request's old fingerprint", async () => {
  const [before, now] = await Promise.all([ringOf("shop", "old"), ringOf("shop", "new", "old")]);
  assert.deepEqual(now.answers.open(before.answers.close(text, "key"), "key"), text);
  assert.equal(before.answers.open(now.answers.close(text, "key"), "key"), undefined);
  const [present, previous] = now.fingerprints(text);
  assert.deepEqual([previous], before.fingerprints(text));
  assert.notEqual(present, previous);
});

test("deriving keys does not block the event loop", async () => {
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 1);
  await ringOf("shop", ...Array.from({ length: 8 }, (_, n) => `password ${n}`));
  clearInterval(timer);
  assert.ok(turns > 2, `${turns} turns`);
});

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Secret } from "../../src/secrets/secret.ts";
import { sign, verify } from "../../src/wire/signature.ts";

interface Vector {
  name: string;
  password: string;
  body: string;
  bodyBase64: string;
  signature: string;
  valid: boolean;
}

const vectors: Vector[] = JSON.parse(
  readFileSync(new URL("../fixtures/callback-signatures.json", import.meta.url), "utf8"),
);
const body = Buffer.from(`{"id":"id-1","note":"???>>>~~~ Кава ☕"}`);
const password = "pass";
const signature = sign(body, password);

describe("a callback's signature", () => {
  for (const { name, password, body, bodyBase64, signature, valid } of vectors) {
    it(`${valid ? "verifies" : "is refused"}: ${name}`, () => {
      const raw = Buffer.from(bodyBase64, "base64");
      assert.deepEqual(raw, Buffer.from(body));
      assert.equal(verify(raw, signature, [password]), valid);
      assert.equal(verify(raw, signature, [new Secret(password)]), valid);
      assert.equal(sign(raw, password) === signature, valid);
    });
  }

  it("is refused when any character of it is changed, dropped or doubled", () => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/= \0Ā😀";
    for (let at = 0; at < signature.length; at++) {
      const [before, after] = [signature.slice(0, at), signature.slice(at + 1)];
      for (const character of alphabet) {
        const changed = before + character + after;
        assert.equal(verify(body, changed, [password]), changed === signature, changed);
      }
      assert.ok(!verify(body, before + after, [password]));
      assert.ok(!verify(body, before + signature[at] + signature.slice(at), [password]));
    }
  });

  it("is refused when absent, spaced, in another case, doubled or in another encoding", () => {
    const others = [
      undefined,
      ` ${signature}`,
      `${signature} `,
      `${signature}\n`,
      signature.toUpperCase(),
      signature.toLowerCase(),
      `${signature}, ${signature}`,
      `sha1=${signature}`,
      Buffer.from(signature, "base64url").toString("latin1"),
      "=".repeat(28),
      // Other characters with the same low bytes.
      String.fromCharCode(...[...signature].map((c) => c.charCodeAt(0) + 0x100)),
      "A".repeat(100_000),
    ];
    for (const other of others) assert.ok(!verify(body, other, [password]), other);
    for (const odd of [[signature], null, 5, { length: 28 }]) {
      assert.ok(!verify(body, odd as unknown as string, [password]));
    }
  });

  it("verifies under any one of several passwords, whatever its place", () => {
    assert.ok(verify(body, signature, [password, "old"]));
    assert.ok(verify(body, signature, ["new", new Secret(password)]));
    assert.ok(!verify(body, signature, ["new", "old"]));
    assert.ok(!verify(body, signature, []));
  });

  it("never verifies under an empty password, though it can be computed", () => {
    const anybodys = sign(body, "");
    assert.ok(!verify(body, anybodys, [""]));
    assert.ok(!verify(body, anybodys, [new Secret(""), "other"]));
    assert.ok(verify(body, signature, ["", password]));
  });

  it("is what the spec's formula gives, for any bytes and any password", () => {
    // A view of a longer buffer, as a body that arrived with its head is.
    const bytes = fc.uint8Array({ minLength: 2, maxLength: 200 }).map((all) => all.subarray(1, -1));
    fc.assert(
      fc.property(bytes, fc.string({ minLength: 1 }), (raw, secret) => {
        const expected = bySpec(raw, secret);
        assert.equal(sign(raw, secret), expected);
        assert.ok(verify(raw, expected, [secret]));
        assert.ok(!verify(Buffer.concat([raw, Buffer.from([0])]), expected, [secret]));
      }),
      { numRuns: 2_000 },
    );
  });
});

/** base64url(SHA-1(password + base64url(body) + password)), by way of the standard alphabet. */
function bySpec(raw: Uint8Array, secret: string): string {
  const url = (base64: string) => base64.replaceAll("+", "-").replaceAll("/", "_");
  const text = secret + url(Buffer.from(raw).toString("base64")) + secret;
  return url(createHash("sha1").update(text, "utf8").digest("base64"));
}

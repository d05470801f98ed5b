import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { createApiKeys, parseKeys } from "../../src/auth/api-keys.ts";
import { GatewayError } from "../../src/errors.ts";
import { keyFile, keysText, newKey, scratch } from "./issuer.ts";

const files = scratch();
const accounts = new Set(["shop", "market"]);
const sha256 = createHash("sha256").update("secret-key").digest("hex");
const good = { name: "shop", sha256, scopes: ["payments:read"] };

test("a key is found by its hash, with its scopes and accounts", (t) => {
  const text = JSON.stringify([{ ...good, merchants: ["market"] }]);
  const keys = createApiKeys(keyFile(files.write("found", text)), accounts);
  t.after(() => keys.close());
  const { name, scopes, merchants } = keys.find("secret-key") ?? {};
  assert.equal(name, "key:shop");
  assert.deepEqual([...(scopes ?? [])], ["payments:read"]);
  assert.deepEqual([...(merchants ?? [])], ["market"]);
  for (const wrong of ["secret-kez", "", "Secret-key", sha256]) {
    assert.equal(keys.find(wrong), undefined, wrong);
  }
});

/** A file with this entry, and others behind it. */
const entry = (change: object, ...others: object[]) =>
  JSON.stringify([{ ...good, ...change }, ...others]);
const unknown =
  /^entry 0 \(shop\): unknown account "marktet" in merchants, configured are shop, market$/;
const refusals: [why: string, text: string, message: RegExp][] = [
  ["text that is not JSON", "[{", /^is not JSON$/],
  ["an object", "{}", /expected array/],
  ["a scope that does not exist", entry({ scopes: ["all"] }), /shop.*"all".*payments:write/],
  ["a hash in upper case", entry({ sha256: sha256.toUpperCase() }), /sha256: 64 hex/],
  ["a key in place of its hash", entry({ sha256: "secret-key" }), /sha256: 64 hex/],
  ["a name given twice", entry({ sha256: "0".repeat(64) }, good), /name is given twice/],
  ["a hash given twice", entry({ name: "other" }, good), /sha256 is given twice/],
  ["an account that is not configured", entry({ merchants: ["market", "marktet"] }), unknown],
  ["no account at all", entry({ merchants: [] }), /at least one account/],
  ["a member that is not known", entry({ scope: [] }), /scope/],
  ["no scopes", entry({ scopes: undefined }), /scopes/],
  ["no name", entry({ name: "" }), /name/],
];
for (const [why, text, message] of refusals) {
  test(`a file with ${why} is refused`, () => {
    assert.throws(
      () => parseKeys(text, accounts),
      (error: Error) => {
        assert.match(error.message, message);
        assert.ok(!error.message.includes("secret-key"), error.message);
        return true;
      },
    );
  });
}

test("a changed file revokes removed and changed keys, adds new ones and keeps the others", async (t) => {
  const [stays, goes, changes] = [newKey(), newKey(), newKey()];
  const [narrows, comes] = [newKey(), newKey()];
  const scopes = ["payments:read"];
  const first = [
    { name: "stays", key: stays, scopes },
    { name: "goes", key: goes, scopes },
    { name: "changes", key: changes, scopes },
    { name: "narrows", key: narrows, scopes, merchants: ["market", "shop"] },
  ];
  const path = files.write("reloaded", keysText(first));
  const reloaded = Promise.withResolvers<void>();
  const keys = createApiKeys(keyFile(path, reloaded.resolve, reloaded.reject), accounts);
  t.after(() => keys.close());
  const before = [stays, goes, changes, narrows].map((key) => keys.find(key)?.revoked);

  files.write(
    "reloaded",
    keysText([
      { name: "stays", key: stays, scopes },
      { name: "changes", key: changes, scopes: ["events:read"] },
      { name: "narrows", key: narrows, scopes, merchants: ["market"] },
      { name: "comes", key: comes, scopes },
    ]),
  );
  await reloaded.promise;
  assert.deepEqual(
    before.map((signal) => signal?.aborted),
    [false, true, true, true],
  );
  const reason = before[1]?.reason;
  assert.ok(reason instanceof GatewayError && reason.code === "UNAUTHENTICATED");
  assert.equal(keys.find(goes), undefined);
  assert.equal(keys.find(comes)?.name, "key:comes");
  assert.deepEqual([...(keys.find(changes)?.scopes ?? [])], ["events:read"]);
  assert.deepEqual([...(keys.find(narrows)?.merchants ?? [])], ["market"]);
  assert.equal(keys.find(changes)?.revoked?.aborted, false);
});

test("an invalid or missing file changes nothing and is reported once", async (t) => {
  const key = newKey();
  const text = keysText([{ name: "shop", key, scopes: [] }]);
  const path = files.write("broken", text);
  const problems: unknown[] = [];
  const told = new EventTarget();
  const onReload = () => void told.dispatchEvent(new Event("reload"));
  const onProblem = (error: unknown) => {
    problems.push(error);
    told.dispatchEvent(new Event("problem"));
  };
  const keys = createApiKeys(keyFile(path, onReload, onProblem), accounts);
  t.after(() => keys.close());

  let problem = once(told, "problem");
  files.write("broken", '[{"name":"shop","sha256":"no"}]');
  await problem;
  assert.match(String(problems[0]), /sha256/);
  assert.equal(keys.find(key)?.name, "key:shop");

  problem = once(told, "problem");
  rmSync(path);
  await problem;
  assert.match(String(problems[1]), /ENOENT/);
  assert.equal(keys.find(key)?.revoked?.aborted, false);

  const reload = once(told, "reload");
  files.write("broken", "[]");
  await reload;
  assert.equal(keys.find(key), undefined);
  assert.equal(problems.length, 2);
});

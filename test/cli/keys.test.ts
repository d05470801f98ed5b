import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { run } from "./resident.ts";
import { placesOf } from "./run.ts";

const newKey = (name: string, ...args: string[]) =>
  run(["keys", "new", "--name", name, "--scopes", "watch:create,events:read", ...args]);

test("a new key is printed with its hash in an entry, which a gateway accepts", async (t) => {
  const { code, out, err } = await newKey("shop", "--merchants", "default");
  assert.equal(code, 0, err);
  const [key = "", entry = ""] = out.split("\n");
  assert.match(key, /^pgw_[\w-]{43}$/);
  const sha256 = createHash("sha256").update(key).digest("hex");
  const scopes = ["watch:create", "events:read"];
  assert.deepEqual(JSON.parse(entry), { name: "shop", sha256, scopes, merchants: ["default"] });
  const asJson = JSON.parse((await newKey("one", "--json")).out);
  assert.equal(asJson.entry.sha256, createHash("sha256").update(asJson.key).digest("hex"));

  const file = join(directory(t), "keys.json");
  writeFileSync(file, `[${entry}]`);
  const started = startTestGateway({ AUTH_MODE: "keys", API_KEYS_FILE: file });
  const places = placesOf(closing(t, await started));
  const token = (PAYMENTS_GATEWAY_KEY: string) =>
    run(["token", "--external-id", "order-1"], { env: { ...places, PAYMENTS_GATEWAY_KEY } });
  assert.equal((await token(key)).code, 0);
  const other = await token(`${key}x`);
  assert.equal(other.code, 1);
  assert.match(other.err, /refuses \(UNAUTHENTICATED\).*PAYMENTS_GATEWAY_KEY/);
  assert.ok(!other.err.includes(key));
});

test("wrong input is named", async () => {
  const scope = await run(["keys", "new", "--name", "x", "--scopes", "events:raed"]);
  assert.equal(scope.code, 64);
  assert.match(scope.err, /^error: unknown scope "events:raed", accepted are payments:write, /);
  assert.equal((await newKey(" x")).code, 64);
});

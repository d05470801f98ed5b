import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmod, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseKeys } from "../../src/auth/api-keys.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { run } from "./resident.ts";
import { placesOf } from "./run.ts";

const dir = directory({ after });

const newKey = (name: string, ...args: string[]) =>
  run(["keys", "new", "--name", name, "--scopes", "watch:create,events:read", ...args]);

test("a new key is printed, only its hash is in the file, and a gateway accepts it", async (t) => {
  const file = join(dir, "first.json");
  const { code, out, err } = await newKey("shop", "--merchants", "default", "--file", file);
  assert.equal(code, 0, err);
  const key = out.trim();
  assert.match(key, /^pgw_[\w-]{43}$/);
  const text = await readFile(file, "utf8");
  assert.ok(!text.includes(key));
  const sha256 = createHash("sha256").update(key).digest("hex");
  const scopes = ["watch:create", "events:read"];
  assert.deepEqual(JSON.parse(text), [{ name: "shop", sha256, scopes, merchants: ["default"] }]);
  assert.equal((await stat(file)).mode & 0o777, 0o600);

  const started = startTestGateway({ AUTH_MODE: "keys", API_KEYS_FILE: file });
  const places = placesOf(closing(t, await started));
  const token = (PAYMENTS_GATEWAY_KEY: string) =>
    run(["token", "--external-id", "order-1"], { env: { ...places, PAYMENTS_GATEWAY_KEY } });
  assert.equal((await token(key)).code, 0);
  const other = await token(`${key}x`);
  assert.equal(other.code, 1);
  assert.match(other.err, /does not accept the credentials.*PAYMENTS_GATEWAY_KEY/);
  assert.ok(!other.err.includes(key));
});

test("a new key is appended, and the file keeps its mode and its symbolic link", async () => {
  const file = join(dir, "second.json");
  const link = join(dir, "link.json");
  assert.equal((await newKey("one", "--file", file)).code, 0);
  await chmod(file, 0o640);
  await symlink(file, link);
  assert.equal((await newKey("two", "--file", link)).code, 0);
  assert.deepEqual(
    [...parseKeys(await readFile(file, "utf8")).values()].map(({ credential }) => credential.name),
    ["key:one", "key:two"],
  );
  assert.equal((await stat(file)).mode & 0o777, 0o640);
  assert.deepEqual(
    (await readdir(dir)).filter((name) => name.endsWith(".new")),
    [],
  );
});

test("wrong input is named, and the file is not changed", async () => {
  const file = join(dir, "third.json");
  assert.equal((await newKey("one", "--file", file)).code, 0);
  const before = await readFile(file, "utf8");
  const again = await newKey("one", "--file", file);
  assert.equal(again.code, 64);
  assert.match(again.err, /the name is given twice/);
  const scope = await run(["keys", "new", "--name", "x", "--scopes", "events:raed"]);
  assert.equal(scope.code, 64);
  assert.match(scope.err, /^error: unknown scope "events:raed", accepted are payments:write, /);
  assert.equal((await newKey(" x")).code, 64);
  assert.equal((await newKey("two", "--file", join(dir, "no/where.json"))).code, 1);

  const broken = join(dir, "broken.json");
  await writeFile(broken, "[{]");
  const refused = await newKey("two", "--file", broken);
  assert.equal(refused.code, 64);
  assert.match(refused.err, /is not JSON/);
  assert.equal(await readFile(broken, "utf8"), "[{]");

  // Another `keys new` is running: its key must not be lost, so neither file is changed.
  await writeFile(`${file}.new`, "half of it");
  const second = await newKey("two", "--file", file);
  assert.equal(second.code, 1);
  assert.match(second.err, /third\.json\.new exists/);
  assert.equal(await readFile(file, "utf8"), before);
  assert.equal(await readFile(`${file}.new`, "utf8"), "half of it");
});

test("of several concurrent writers, each that reports success has its key in the file", async () => {
  const file = join(dir, "many.json");
  const names = ["a", "b", "c"];
  const done = await Promise.all(names.map((name) => newKey(name, "--file", file, "--json")));
  const written = names.filter((_, index) => done[index]?.code === 0);
  assert.ok(written.length > 0);
  const entries = JSON.parse(await readFile(file, "utf8")) as { name: string; sha256: string }[];
  assert.deepEqual(entries.map(({ name }) => name).sort(), written);
  for (const { code, out } of done) {
    if (code !== 0) continue;
    const { entry } = JSON.parse(out) as { entry: { sha256: string } };
    assert.ok(entries.some(({ sha256 }) => sha256 === entry.sha256));
  }
});

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { sendCallback } from "../gateway/callers.ts";
import { serve } from "../listen.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { run } from "./resident.ts";
import { placesOf } from "./run.ts";

const gateway = ofSuite(startTestGateway);

const letters = (...args: string[]) => run(["dead-letters", ...args], { env: placesOf(gateway) });

const addDeadLetter = (body: string) => sendCallback(gateway, body);

/** The letters that `list` prints with these options. */
async function listed(...options: string[]): Promise<Record<string, string>[]> {
  const { out } = await letters("list", "--json", ...options);
  return out.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
}

test("lists letters, shows them without card data, and prints the bytes with --raw", async () => {
  const none = await letters("list");
  assert.deepEqual([none.code, none.out, none.err], [0, "", "no dead letters\n"]);
  const body = '{"cc": {"number": "4111111111111111", "cvv":"941"} }';
  await addDeadLetter(body);
  await addDeadLetter('{"second": true}');

  const [newest, oldest] = await listed();
  assert.equal(newest?.account, "default");
  const id = oldest?.id ?? "";
  assert.ok((await letters("list")).out.includes(id.slice(0, 12)));
  assert.equal((await letters("list", "--account", "default")).code, 0);

  const shown = await letters("show", id.slice(0, 10));
  assert.equal(shown.code, 0);
  assert.match(shown.out, /"number": "\[redacted\]",\n {4}"cvv": "\[redacted\]"/);
  const raw = await letters("show", id, "--raw");
  assert.equal(raw.out, body);
  assert.match(raw.err, /may hold card data/);
  assert.equal((await letters("show", "zzz")).code, 1);
  const both = await letters("show", "");
  assert.equal(both.code, 1);
});

test("replays one letter or all, and prints how many are still not understood", async () => {
  const { out, code } = await letters("replay", "--all");
  assert.equal(code, 1);
  assert.equal(out, "2 still not understood\n");
  const [letter] = await listed();
  const one = await letters("replay", letter?.id ?? "", "--json");
  assert.equal(one.code, 1);
  assert.equal(JSON.parse(one.out).outcome, "not_understood");
});

test("list stops at --limit, and without it reads all letters page by page", async () => {
  for (let nth = 0; nth < 120; nth++) await addDeadLetter(`{"nth": ${nth}}`);
  const all = await listed();
  assert.equal(new Set(all.map(({ id }) => id)).size, 122);
  assert.deepEqual(await listed("--limit", "3"), all.slice(0, 3));
  const { code, out } = await letters("replay", "--all");
  assert.deepEqual([code, out], [1, "122 still not understood\n"]);
});

test("discard deletes the named letters for good, and only with --yes", async () => {
  const idsLeft = async () => (await listed()).map(({ id = "" }) => id);
  const ids = await idsLeft();
  const [first = "", second = ""] = ids;
  const unsure = await letters("discard", first);
  assert.equal(unsure.code, 64);
  assert.match(unsure.err, /cannot be restored: give --yes/);
  const half = await letters("discard", first, "zzz", "--yes");
  assert.equal(half.code, 1);
  assert.match(half.err, /no dead letter "zzz"/);
  assert.deepEqual(await idsLeft(), ids, "nothing is gone yet");
  const { code, out } = await letters("discard", first, second.slice(0, 16), first, "--yes");
  assert.deepEqual([code, out], [0, "2 discarded\n"]);
  assert.deepEqual(await idsLeft(), ids.slice(2));
});

/** The options for an admin listener that answers with `answer`. */
async function adminOf(
  t: TestContext,
  answer: (request: { url: string; key: string | undefined }) => [number, unknown],
): Promise<["--admin-url", string]> {
  const admin = createServer((request, response) => {
    request.resume();
    const key = request.headers.authorization;
    const [status, body] = answer({ url: `${request.method} ${request.url}`, key });
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  return ["--admin-url", await serve(t, admin)];
}

const letter = (account: string, id: string, receivedAt: string) => ({
  ...{ account, id, resource: "payments", reason: "why", receivedAt },
});
const one = letter("a", "one", "2026-01-02");
const isList = (url: string) => url.startsWith("GET /dead-letters?");
const listOf = (...dead_letters: object[]): [number, object] => [
  200,
  { dead_letters, total: dead_letters.length },
];

test("a replay of a letter that cannot be decrypted has failed", async (t) => {
  const at = await adminOf(t, ({ url }) =>
    isList(url) ? listOf(one) : [422, { outcome: "locked" }],
  );
  const { code, out } = await run(["dead-letters", "replay", "--all", ...at]);
  assert.deepEqual([code, out], [1, "1 not decrypted: no configured password opens it\n"]);
});

test("show prints no control characters, and only the length of bytes that are not text", async (t) => {
  let details = {};
  const at = await adminOf(t, ({ url }) =>
    isList(url) ? listOf(one) : [200, { ...one, ...details }],
  );
  const shown = async (next: object) => {
    details = next;
    return (await run(["dead-letters", "show", "one", ...at])).out;
  };
  for (const text of ['{"a":"\u001b[2J\u009b\u202e"}', '{"a": broken \u001b[2J\r\u0007']) {
    const out = await shown({ text, bytes: text.length });
    assert.match(out, /"a"/);
    assert.doesNotMatch(out, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  }
  assert.match(await shown({ body: "//4=", bytes: 2 }), /\[2 bytes that are not UTF-8\]\n$/);
});

test("replay starts with the oldest and counts understood and known letters separately", async (t) => {
  const asked: string[] = [];
  const at = await adminOf(t, ({ url }) => {
    if (!isList(url)) {
      asked.push(url);
      return [200, { outcome: url.includes("/old/") ? "stored" : "duplicate" }];
    }
    assert.match(url, /[?&]order=oldest(&|$)/);
    if (url.includes("cursor=behind-old")) return listOf(letter("a", "new", "2026-01-02"));
    const old = letter("a", "old", "2026-01-01");
    return [200, { dead_letters: [old], total: 2, next_cursor: "behind-old" }];
  });
  const { code, out } = await run(["dead-letters", "replay", "--all", ...at]);
  assert.deepEqual([code, out], [0, "1 understood now, 1 known already\n"]);
  assert.deepEqual(asked, ["POST /dead-letters/a/old/replay", "POST /dead-letters/a/new/replay"]);
});

test("discard reports a letter that is already gone", async (t) => {
  const at = await adminOf(t, ({ url }) =>
    isList(url) ? listOf(one) : [404, { error: "not found" }],
  );
  const { code, out } = await run(["dead-letters", "discard", "one", "--yes", ...at]);
  assert.deepEqual([code, out], [1, "0 discarded, 1 gone before\n"]);
});

test("sends its key to the admin listener, and explains when the key is refused", async (t) => {
  const [, url] = await adminOf(t, ({ key }) =>
    key === "Bearer k-admin" ? listOf() : [403, { error: "needs the scope admin" }],
  );
  const list = (env: Record<string, string>) =>
    run(["dead-letters", "list"], { env: { PAYMENTS_GATEWAY_ADMIN_URL: url, ...env } });
  assert.equal((await list({ PAYMENTS_GATEWAY_KEY: "k-admin" })).code, 0);
  const file = join(directory(t), "key");
  writeFileSync(file, "k-admin\n");
  assert.equal((await list({ PAYMENTS_GATEWAY_KEY_FILE: file })).code, 0);
  for (const env of [{}, { PAYMENTS_GATEWAY_KEY: "k-other" }]) {
    const { code, err } = await list(env as Record<string, string>);
    assert.equal(code, 1);
    assert.match(err, /refuses \(403\): needs the scope admin/);
    assert.ok(!err.includes("k-other"));
  }
});

test("says what the admin listener refuses, such as an account that does not exist", async () => {
  const { code, err } = await letters("list", "--account", "shpo");
  const error = "the admin listener refuses (403): the account is unknown or not yours";
  assert.deepEqual([code, err], [1, `error: ${error}\n`]);
});

test("an answer without an end is no answer of an admin listener", async (t) => {
  let sent = 0;
  const endless = createServer((_, response) => {
    const more = () => {
      sent += 65_536;
      if (response.write(" ".repeat(65_536))) setImmediate(more);
      else response.once("drain", more);
    };
    more();
  });
  const { code, err } = await run(["dead-letters", "list", "--admin-url", await serve(t, endless)]);
  assert.equal(code, 1);
  assert.match(err, /answers, but not as a gateway's admin listener does/);
  assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes`);
});

test("an ambiguous id ends with 64, an unreachable store or listener with 69", async (t) => {
  const at = await adminOf(t, ({ url }) => {
    if (!isList(url)) return [503, { error: "the store is out of reach" }];
    return listOf(letter("a", "same", "2026-01-02"), letter("a", "sad", "2026-01-01"));
  });
  const both = await run(["dead-letters", "replay", "sa", ...at]);
  assert.equal(both.code, 64);
  assert.match(both.err, /2 dead letters begin with "sa": give more of it/);
  const away = await run(["dead-letters", "replay", "sam", ...at]);
  assert.equal(away.code, 69);
  assert.match(away.err, /the store is out of reach/);
  const nobody = await run(["dead-letters", "list", "--admin-url", "http://127.0.0.1:9"]);
  assert.equal(nobody.code, 69);
  assert.match(nobody.err, /cannot reach the gateway at .*Else give --admin-url/);
});

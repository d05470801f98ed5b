import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pino } from "pino";
import type { Gateway } from "../../src/app/gateway.ts";
import { accessEnv, newKey, scratch } from "../auth/issuer.ts";
import { startTestGateway } from "../start.ts";
import { sendCallback } from "./callers.ts";

const files = scratch();
const [adminKey, shopKey] = [newKey(), newKey()];
const lines: string[] = [];

let gateway: Gateway;
before(async () => {
  const merchants = ["shop", "market"].map((login) => [
    login,
    { login, password: `password-of-${login}`, url: "http://127.0.0.1:9" },
  ]);
  gateway = await startTestGateway(
    {
      MERCHANTS_FILE: files.write("merchants", JSON.stringify(Object.fromEntries(merchants))),
      ...accessEnv(files, [
        { name: "ops", key: adminKey, scopes: ["admin"] },
        { name: "shop-ops", key: shopKey, scopes: ["admin"], merchants: ["shop"] },
      ]),
    },
    {},
    pino({ level: "info" }, { write: (line: string) => void lines.push(line) }),
  );
});
after(() => gateway.stop());

const addDeadLetter = (account: string, body: string) =>
  sendCallback(gateway, body, {
    ...{ path: `${account}/payments`, password: `password-of-${account}` },
  });

interface Answer {
  readonly status: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects
  readonly json: any;
  readonly allow: string | null;
}

async function ask(
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(gateway.adminUrl + path, {
    method,
    headers: { authorization: `Bearer ${adminKey}`, ...headers },
  });
  const text = await response.text();
  const { status } = response;
  return {
    ...{ status, text, allow: response.headers.get("allow") },
    json: text === "" ? undefined : JSON.parse(text),
  };
}

const json = { "content-type": "application/json" };

/** All pages of a list. */
async function pagesOf(query: string): Promise<Answer["json"][]> {
  const pages: Answer["json"][] = [];
  for (let cursor = ""; ; ) {
    const { status, json } = await ask("GET", `/dead-letters?${query}${cursor}`);
    assert.equal(status, 200);
    pages.push(json);
    if (json.next_cursor === undefined) return pages;
    cursor = `&cursor=${encodeURIComponent(json.next_cursor)}`;
  }
}

test("an operator discards a dead letter, and the log names the operator", async () => {
  await addDeadLetter("market", '{"nobody": "understands"}');
  const { json: listed } = await ask("GET", "/dead-letters?account=market");
  const path = `/dead-letters/market/${listed.dead_letters[0].id}`;
  const ofOther = { authorization: `Bearer ${shopKey}` };
  assert.equal((await ask("DELETE", path, ofOther)).status, 404, "it is another's");
  const gone = await ask("DELETE", path);
  assert.deepEqual([gone.status, gone.text], [204, ""]);
  for (const method of ["DELETE", "GET"]) assert.equal((await ask(method, path)).status, 404);
  assert.equal((await ask("POST", `${path}/replay`, json)).status, 404);
  const { json: left } = await ask("GET", "/dead-letters?account=market");
  assert.deepEqual(left, { dead_letters: [], total: 0 });

  const told = lines.filter((line) => line.includes("discarded")).map((line) => JSON.parse(line));
  assert.equal(told.length, 1);
  const [{ operator, account, id, resource }] = told;
  assert.deepEqual([operator, account, resource], ["key:ops", "market", "payments"]);
  assert.equal(id, listed.dead_letters[0].id);
  assert.ok(!lines.some((line) => line.includes("understands")), "nothing of its body is logged");

  // The same callback is accepted again: a discarded letter is not blocked.
  await addDeadLetter("market", '{"nobody": "understands"}');
  assert.equal((await ask("GET", "/dead-letters?account=market")).json.total, 1);
  await ask("DELETE", path);
});

test("the list has pages over all accounts in either order, also when letters are discarded", async () => {
  const before = (await ask("GET", "/dead-letters?order=oldest")).json.dead_letters;
  for (let nth = 0; nth < 7; nth++) {
    await addDeadLetter(nth % 3 === 0 ? "market" : "shop", `{"nth": ${nth}}`);
  }
  const all = (await ask("GET", "/dead-letters?order=oldest")).json.dead_letters;
  assert.equal(all.length, before.length + 7);
  const times = all.map(({ receivedAt }: { receivedAt: string }) => receivedAt);
  assert.deepEqual(times, times.toSorted());

  const oldest = await pagesOf("order=oldest&limit=3");
  assert.deepEqual(
    oldest.flatMap(({ dead_letters }) => dead_letters),
    all,
  );
  assert.ok(oldest.slice(0, -1).every(({ dead_letters }) => dead_letters.length === 3));
  assert.ok(oldest.every(({ total }) => total === all.length));
  const idsOf = (letters: { id: string }[]) => letters.map(({ id }) => id).sort();
  const newest = (await pagesOf("limit=2")).flatMap(({ dead_letters }) => dead_letters);
  assert.deepEqual(idsOf(newest), idsOf(all));
  assert.ok(newest[0].receivedAt >= newest.at(-1).receivedAt);
  const ofShop = (await pagesOf("account=shop&limit=1")).flatMap((page) => page.dead_letters);
  assert.deepEqual(
    idsOf(ofShop),
    idsOf(all.filter(({ account }: { account: string }) => account === "shop")),
  );

  const { json: first } = await ask("GET", "/dead-letters?order=oldest&limit=4");
  for (const { account, id } of first.dead_letters) {
    assert.equal((await ask("DELETE", `/dead-letters/${account}/${id}`)).status, 204);
  }
  const behind = `/dead-letters?order=oldest&cursor=${first.next_cursor}`;
  assert.deepEqual((await ask("GET", behind)).json.dead_letters, all.slice(4));
});

test("an invalid query parameter is 400 with its name, and another method is 405", async () => {
  const { next_cursor: cursor } = (await ask("GET", "/dead-letters?limit=1")).json;
  for (const [query, message] of [
    ["limit=0", /^limit: accepted is 1 to 1000/],
    ["limit=1001", /^limit: accepted is 1 to 1000/],
    ["limit=many", /^limit: is not a whole number/],
    ["order=random", /^order: accepted is newest or oldest/],
    ["cursor=zzz", /cursor/],
    [`cursor=${cursor}&order=oldest`, /^cursor: it is not the next_cursor of a list in this order/],
    [`cursor=${Buffer.from('["newest",["shop","1e9"]]').toString("base64url")}`, /cursor/],
    ["page=2", /page/],
  ] as const) {
    const { status, json } = await ask("GET", `/dead-letters?${query}`);
    assert.equal(status, 400, query);
    assert.match(json.error, message);
  }
  for (const [method, path, allow] of [
    ["DELETE", "/dead-letters", "GET, HEAD"],
    ["PUT", "/dead-letters/shop/none", "GET, HEAD, DELETE"],
    ["DELETE", "/dead-letters/shop/none/replay", "POST"],
  ] as const) {
    const answer = await ask(method, path);
    assert.deepEqual([answer.status, answer.allow], [405, allow], path);
  }
});

test("an unknown dead letter is 404, and so is any other path", async () => {
  for (const path of [
    "/dead-letters/shop/none",
    "/dead-letters/shop",
    "/dead-letters/shop/none/burn",
    "/dead-letters-x",
  ]) {
    assert.equal((await ask("GET", path)).status, 404, path);
  }
});

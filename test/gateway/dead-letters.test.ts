import assert from "node:assert/strict";
import { test } from "node:test";
import { ask } from "../ask.ts";
import { accessEnv, newKey, scratch } from "../auth/issuer.ts";
import { logRecords } from "../log-records.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { sendCallback } from "./callers.ts";

const files = scratch();
const [adminKey, shopKey] = [newKey(), newKey()];
const { log, records } = logRecords();

const gateway = ofSuite(() => {
  const merchants = ["shop", "market"].map((login) => [
    login,
    { login, password: `password-of-${login}`, url: "http://127.0.0.1:9" },
  ]);
  return startTestGateway(
    {
      MERCHANTS_FILE: files.write("merchants", JSON.stringify(Object.fromEntries(merchants))),
      ...accessEnv(files, [
        { name: "ops", key: adminKey, scopes: ["admin"] },
        { name: "shop-ops", key: shopKey, scopes: ["admin"], merchants: ["shop"] },
      ]),
    },
    {},
    log,
  );
});

const addDeadLetter = (account: string, body: string) =>
  sendCallback(gateway, body, {
    ...{ path: `${account}/payments`, password: `password-of-${account}` },
  });

/** An operator's request. */
async function send(method: string, path: string, headers: Record<string, string> = {}) {
  const answer = await ask(gateway.adminUrl + path, {
    method,
    headers: { authorization: `Bearer ${adminKey}`, ...headers },
  });
  return { ...answer, json: answer.text === "" ? undefined : JSON.parse(answer.text) };
}

const json = { "content-type": "application/json" };

interface Letter {
  readonly id: string;
  readonly account: string;
  readonly receivedAt: string;
}

interface Page {
  readonly dead_letters: readonly Letter[];
  readonly total: number;
  readonly next_cursor?: string;
}

const list = async (query: string): Promise<Page> => {
  const { status, json } = await send("GET", `/dead-letters?${query}`);
  assert.equal(status, 200);
  return json;
};

/** All pages of a list. */
async function pagesOf(query: string): Promise<Page[]> {
  const pages: Page[] = [];
  for (let cursor = ""; ; ) {
    const page = await list(`${query}${cursor}`);
    pages.push(page);
    if (page.next_cursor === undefined) return pages;
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
  }
}

test("an operator discards a dead letter, and the log names the operator", async () => {
  await addDeadLetter("market", '{"nobody": "understands"}');
  const listed = await list("account=market");
  const path = `/dead-letters/market/${listed.dead_letters[0]?.id}`;
  const ofOther = { authorization: `Bearer ${shopKey}` };
  assert.equal((await send("DELETE", path, ofOther)).status, 404, "it is another's");
  const gone = await send("DELETE", path);
  assert.deepEqual([gone.status, gone.text], [204, ""]);
  for (const method of ["DELETE", "GET"]) assert.equal((await send(method, path)).status, 404);
  assert.equal((await send("POST", `${path}/replay`, json)).status, 404);
  assert.deepEqual(await list("account=market"), { dead_letters: [], total: 0 });

  const told = records.filter(({ msg }) => `${msg}`.includes("discarded"));
  assert.equal(told.length, 1);
  const [{ operator, account, id, resource } = {}] = told;
  assert.deepEqual([operator, account, resource], ["key:ops", "market", "payments"]);
  assert.equal(id, listed.dead_letters[0]?.id);
  assert.doesNotMatch(JSON.stringify(records), /understands/, "nothing of its body is logged");

  // The same callback is accepted again: a discarded letter is not blocked.
  await addDeadLetter("market", '{"nobody": "understands"}');
  assert.equal((await list("account=market")).total, 1);
  await send("DELETE", path);
});

test("the list of an account has pages in either order, also when letters are discarded", async () => {
  for (let nth = 0; nth < 7; nth++) await addDeadLetter("shop", `{"nth": ${nth}}`);
  await addDeadLetter("market", '{"nth": 0}');
  const { dead_letters: all, total } = await list("account=shop&order=oldest");
  assert.deepEqual([all.length, total], [7, 7]);
  const times = all.map(({ receivedAt }) => receivedAt);
  assert.deepEqual(times, times.toSorted());

  const oldest = await pagesOf("account=shop&order=oldest&limit=3");
  assert.deepEqual(
    oldest.map(({ dead_letters, total }) => [dead_letters.length, total]),
    [3, 3, 1].map((length) => [length, 7]),
  );
  const lettersOf = (pages: Page[]) => pages.flatMap(({ dead_letters }) => dead_letters);
  assert.deepEqual(lettersOf(oldest), all);
  assert.deepEqual(lettersOf(await pagesOf("account=shop&limit=2")), all.toReversed());

  const first = await list("account=shop&order=oldest&limit=4");
  for (const { account, id } of first.dead_letters) {
    assert.equal((await send("DELETE", `/dead-letters/${account}/${id}`)).status, 204);
  }
  const behind = await list(`account=shop&order=oldest&cursor=${first.next_cursor}`);
  assert.deepEqual(behind.dead_letters, all.slice(4));
});

test("who asks for no raw body of a letter gets the masked text alone, and who does is logged", async () => {
  await addDeadLetter("shop", '{"cvv": "q-941-q"}');
  const [{ id = "" } = {}] = (await list("account=shop&limit=1")).dead_letters;
  const { text, body } = (await send("GET", `/dead-letters/shop/${id}?raw=false`)).json;
  assert.deepEqual([text, body], ['{\n  "cvv": "[redacted]"\n}', undefined]);
  const told = () => records.filter(({ msg }) => msg === "dead letter read as it came");
  assert.deepEqual(told(), []);
  const { json } = await send("GET", `/dead-letters/shop/${id}`);
  assert.equal(Buffer.from(json.body, "base64").toString(), '{"cvv": "q-941-q"}');
  assert.deepEqual(
    told().map((record) => [record.operator, record.account, record.id]),
    [["key:ops", "shop", id]],
  );
  assert.doesNotMatch(JSON.stringify(records), /q-941-q/);
});

test("an invalid query parameter is 400 with its name, and another method is 405", async () => {
  for (const [query, message] of [
    ["limit=1", /^account: name one of your accounts/],
    ["limit=0", /^limit: accepted is 1 to 1000/],
    ["limit=1001", /^limit: accepted is 1 to 1000/],
    ["limit=many", /^limit: is not a whole number/],
    ["order=random", /^order: accepted is newest or oldest/],
    ["account=shop&cursor=zzz", /cursor/],
    ["account=shop&cursor=", /cursor/],
    ["account=shop&cursor=1e9", /cursor/],
    ["page=2", /page/],
  ] as const) {
    const { status, json } = await send("GET", `/dead-letters?${query}`);
    assert.equal(status, 400, query);
    assert.match(json.error, message);
  }
  for (const [method, path, allow] of [
    ["DELETE", "/dead-letters", "GET, HEAD"],
    ["PUT", "/dead-letters/shop/none", "GET, HEAD, DELETE"],
    ["DELETE", "/dead-letters/shop/none/replay", "POST"],
  ] as const) {
    const { status, headers } = await send(method, path);
    assert.deepEqual([status, headers.allow], [405, allow], path);
  }
});

test("an unknown dead letter is 404, and so is any other path", async () => {
  for (const path of [
    "/dead-letters/shop/none",
    "/dead-letters/shop",
    "/dead-letters/shop/none/burn",
    "/dead-letters-x",
  ]) {
    assert.equal((await send("GET", path)).status, 404, path);
  }
});

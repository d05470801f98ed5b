import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { DeadLetterDetails, DeadLetterPage } from "../../src/admin/console-api.ts";
import { deadLetterRoutes } from "../../src/admin/dead-letters.ts";
import { Refused } from "../../src/admin/operator.ts";
import { GatewayError } from "../../src/errors.ts";
import { EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { type Observations, reportTo } from "../../src/report.ts";
import { createMemoryLedger } from "../ledger/create.ts";
import { closing } from "../of-suite.ts";

function rig(t: TestContext, accounts = ["shop"]) {
  const log = closing(t, createMemoryLedger({ retentionMs: 86_400_000 }));
  const told: Observations["letterHandled"][] = [];
  const report = reportTo({ letterHandled: (about) => void told.push(about) });
  const routes = deadLetterRoutes(log, report);
  const ask = async (route: string, id?: string, query = {}) => {
    const answer = await routes[route]?.({
      operator: { name: "ops", accounts },
      variables: id === undefined ? [] : ["shop", id],
      query: new URLSearchParams(query),
      body: () => assert.fail("no route has a body"),
    });
    return answer?.body as unknown;
  };
  const read = (id: string, query = {}) =>
    ask("GET /dead-letters/{account}/{id}", id, query) as Promise<DeadLetterDetails>;
  const list = (query: object = { order: "oldest" }) =>
    ask("GET /dead-letters", undefined, query) as Promise<DeadLetterPage>;
  const orStatus = (answer: Promise<unknown>) =>
    answer.catch((error: unknown) =>
      error instanceof Refused ? error.status : assert.fail(String(error)),
    );
  const replay = (id: string) => orStatus(ask("POST /dead-letters/{account}/{id}/replay", id));
  const discard = (id: string) => orStatus(ask("DELETE /dead-letters/{account}/{id}", id));
  let added = 0;
  const find = async (body: string | Uint8Array) => {
    const id = `l-${++added}`;
    await log.letters.addDeadLetter("shop", {
      ...{ id, kind: EventKind.PAYOUT, reason: "why", receivedAtMs: added },
      body: Buffer.from(body as string).toString("base64"),
    });
    return read(id);
  };
  return { log, read, list, replay, discard, find, told };
}

test("a letter is read as it is listed, with its body and the masked text", async (t) => {
  const { read, list, find, told } = rig(t);
  const view = {
    account: "shop",
    id: "l-1",
    resource: "payouts",
    reason: "why",
    receivedAt: "1970-01-01T00:00:00.001Z",
    bytes: 2,
  };
  assert.deepEqual(await find("{}"), { ...view, body: "e30=", text: "{}" });
  assert.deepEqual(told.splice(0), [{ operator: "ops", did: "read as it came", letter: view }]);
  const secret = (await find('{"cvv":"941","description":"4111 1111 1111 1111"}')).text;
  assert.equal(secret, '{\n  "cvv": "[redacted]",\n  "description": "4111 11** **** 1111"\n}');
  told.length = 0;
  assert.equal((await read("l-1", { raw: "false" })).body, undefined);
  assert.deepEqual(told, [], "what it came as was not read");
  const page = await list();
  assert.deepEqual([page.dead_letters[0], page.total], [view, 2]);
  assert.match((await find("")).text ?? "", /^\[0 characters/, "an empty body is a text");
  const bytes = await find(Uint8Array.of(0xff, 0xfe));
  assert.deepEqual([bytes.body, bytes.text], ["//4=", undefined], "it is no text");
});

test("a replay that is understood is told with its operator, and one that is not, not", async (t) => {
  const { replay, find, told } = rig(t);
  await find('{"external_id": "e", "transaction_id": "t", "status": "success"}');
  await find("[]");
  told.length = 0;
  const found: unknown[] = [];
  for (const id of ["l-1", "l-2", "l-1"]) found.push(await replay(id));
  assert.deepEqual(found, [{ outcome: "stored" }, { outcome: "not_understood" }, 404]);
  const letter = { account: "shop", id: "l-1", outcome: "stored" };
  assert.deepEqual(told, [{ operator: "ops", did: "replayed", letter }]);
});

test("the list has pages in either order, also when letters of the page before are gone", async (t) => {
  const { list, find, discard, told } = rig(t);
  for (let nth = 0; nth < 7; nth++) await find(`{"nth": ${nth}}`);
  const idsOf = ({ dead_letters }: DeadLetterPage) => dead_letters.map(({ id }) => id);
  const pagesOf = async (query: object) => {
    const pages: string[][] = [];
    for (let more = {}; ; ) {
      const page = await list({ ...query, ...more });
      assert.equal(page.total, 7);
      pages.push(idsOf(page));
      if (page.next_cursor === undefined) return pages;
      more = { cursor: page.next_cursor };
    }
  };
  const [first, second, third] = [["l-1", "l-2", "l-3"], ["l-4", "l-5", "l-6"], ["l-7"]] as const;
  assert.deepEqual(await pagesOf({ order: "oldest", limit: "3" }), [first, second, third]);
  const newest = await pagesOf({ limit: "2" });
  assert.deepEqual(newest.flat().toReversed(), [first, second, third].flat());

  const { next_cursor: cursor } = await list({ order: "oldest", limit: "3" });
  told.length = 0;
  for (const id of first) assert.equal(await discard(id), undefined);
  const discarded = first.map((id) => ({ operator: "ops", did: "discarded", letter: { id } }));
  assert.partialDeepStrictEqual(told, discarded);
  assert.equal(await discard("l-1"), 404);
  assert.deepEqual(idsOf(await list({ order: "oldest", cursor })), [...second, ...third]);
});

test("a list by an invalid parameter is refused with its name", async (t) => {
  const { list } = rig(t, ["shop", "market"]);
  for (const [query, message] of [
    [{}, /^account: name one of your accounts/],
    [{ limit: "0" }, /^limit: accepted is 1 to 1000/],
    [{ limit: "1001" }, /^limit: accepted is 1 to 1000/],
    [{ limit: "many" }, /^limit: is not a whole number/],
    [{ order: "random" }, /^order: accepted is newest or oldest/],
    [{ account: "shop", cursor: "zzz" }, /cursor/],
    [{ account: "shop", cursor: "" }, /cursor/],
    [{ account: "shop", cursor: "1e9" }, /cursor/],
    [{ page: "2" }, /page/],
  ] as const) {
    await assert.rejects(list(query), { message }, JSON.stringify(query));
  }
});

test("a replay removes a letter whose event is stored already, and none whose event cannot be", async (t) => {
  const { log, replay, find, list } = rig(t);
  const payout = '{"external_id": "e", "transaction_id": "t", "status": "success"}';
  await find(payout);
  assert.deepEqual(await replay("l-1"), { outcome: "stored" });
  await find(`${payout}\n`);
  assert.deepEqual(await replay("l-2"), { outcome: "duplicate" });
  const [event, ...others] = await log.history("shop", EventKind.PAYOUT, "e", 10);
  assert.deepEqual([event?.source, others], [EventSource.CALLBACK, []]);
  await find(payout);
  log.append = () => Promise.reject(new GatewayError("UNAVAILABLE", "away"));
  await assert.rejects(replay("l-3"));
  assert.equal((await list()).total, 1);
});

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { DeadLetterDetails, DeadLetterPage } from "../../src/admin/console-api.ts";
import { deadLetterRoutes } from "../../src/admin/dead-letters.ts";
import { Refused } from "../../src/admin/operator.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { type Observations, reportTo } from "../../src/report.ts";
import { createMemoryLedger } from "../ledger/create.ts";

function rig(t: TestContext) {
  const log = createMemoryLedger({ retentionMs: 86_400_000 });
  t.after(() => log.close());
  const told: Observations["letterHandled"][] = [];
  const report = reportTo({ letterHandled: (about) => void told.push(about) });
  const routes = deadLetterRoutes(log, report);
  const ask = async (route: string, id?: string, query = {}) => {
    const answer = await routes[route]?.({
      operator: { name: "ops", accounts: ["shop"] },
      variables: id === undefined ? [] : ["shop", id],
      query: new URLSearchParams(query),
      body: () => assert.fail("no route has a body"),
    });
    return answer?.body as unknown;
  };
  const read = (id: string, query = {}) =>
    ask("GET /dead-letters/{account}/{id}", id, query) as Promise<DeadLetterDetails>;
  const list = () =>
    ask("GET /dead-letters", undefined, { order: "oldest" }) as Promise<DeadLetterPage>;
  const replay = (id: string) =>
    ask("POST /dead-letters/{account}/{id}/replay", id).catch((error: unknown) =>
      error instanceof Refused ? error.status : assert.fail(String(error)),
    );
  let added = 0;
  const find = async (body: string | Uint8Array) => {
    const id = `l-${++added}`;
    await log.letters.addDeadLetter("shop", {
      ...{ id, kind: EventKind.PAYOUT, reason: "why", receivedAtMs: added },
      body: Buffer.from(body as string).toString("base64"),
    });
    return read(id);
  };
  return { read, list, replay, find, told };
}

test("a letter is read as it is listed, with its body and the masked text", async (t) => {
  const { read, list, find } = rig(t);
  const view = {
    account: "shop",
    id: "l-1",
    resource: "payouts",
    reason: "why",
    receivedAt: "1970-01-01T00:00:00.001Z",
    bytes: 2,
  };
  assert.deepEqual(await find("{}"), { ...view, body: "e30=", text: "{}" });
  const secret = (await find('{"cvv":"941","description":"4111 1111 1111 1111"}')).text;
  assert.equal(secret, '{\n  "cvv": "[redacted]",\n  "description": "4111 11** **** 1111"\n}');
  assert.equal((await read("l-1", { raw: "false" })).body, undefined);
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

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { reportTo } from "../../src/report.ts";
import type { Upstream } from "../../src/upstream/upstream.ts";
import { valuesOf } from "../values-of.ts";
import {
  createPayment,
  failureOf,
  getOperation,
  getPayout,
  moneyCalls,
  patient,
  serverRig,
} from "./rig.ts";
import { json, type WireRequest } from "./scripted-server.ts";

const idIn = ({ body }: WireRequest): string => JSON.parse(body).external_id;

const paid = (externalId: string) =>
  json(200, `{"external_id":"${externalId}","is_success":true,"details":{"status":"success"}}`);

const pay = (upstream: Upstream, externalId: string) =>
  createPayment(upstream, patient, externalId);

test("an answer with another external_id is discarded, and connections are not reused for 10 min", async (t) => {
  let nowMs = 0;
  const mixUps: string[] = [];
  const faults: (string | undefined)[] = [];
  const report = reportTo({
    mixUp: ({ endpoint }) => void mixUps.push(endpoint),
    upstreamCall: ({ fault }) => void faults.push(fault),
  });
  t.mock.method(performance, "now", () => nowMs);
  const answering = (request: WireRequest) => {
    // As from a proxy that repeats an answer that it believes lost.
    const repeated = server.requests.length === 3 ? paid("another") : "";
    request.socket.write(repeated + paid(idIn(request)));
  };
  const { upstream, server } = await serverRig(t, answering, { report });

  const paidOne = async (id: string) => {
    await pay(upstream, id);
    // A connection becomes free one turn of the event loop after its answer.
    await delay(5);
  };
  await Promise.all([paidOne("1"), paidOne("2")]);
  const closed = server.requests.map(({ socket }) => once(socket, "close"));
  const error = await failureOf(pay(upstream, "3"));
  assert.equal(error.code, "UNKNOWN");
  assert.deepEqual(error.details.outcomeUnknown, { externalId: "3" });
  assert.deepEqual(mixUps, ["POST /api/payments/v1/new"]);
  assert.deepEqual(faults, [undefined, undefined, undefined], "the mix-up is told once");
  assert.equal(server.connections, 2);
  await Promise.all(closed);

  nowMs = 599_999;
  for (const id of ["4", "5"]) await paidOne(id);
  nowMs = 600_000;
  for (const id of ["6", "7", "8"]) await paidOne(id);
  assert.deepEqual(valuesOf(server.requests.slice(3), "connection"), [2, 3, 4, 4, 4]);
});

test("every call with an external_id discards an answer that names another", async (t) => {
  const body = `{"external_id":"another","id":"i","transaction_id":"t","status":"success",
    "details":{"status":"success"}}`;
  for (const status of [200, 402]) {
    const { upstream } = await serverRig(t, json(status, body));
    const money = Object.values(moneyCalls).map((call) => call(upstream, patient, "mine"));
    for (const { code, details } of await Promise.all(money.map(failureOf))) {
      assert.deepEqual([code, details.outcomeUnknown], ["UNKNOWN", { externalId: "mine" }]);
    }
    if (status !== 200) continue;
    for (const read of [getPayout, getOperation]) {
      assert.equal((await failureOf(read(upstream, patient, "mine"))).code, "UNAVAILABLE");
    }
  }
});

for (const [what, bytes] of [
  ["a whole answer", paid("another")],
  ["the first byte of one", "H"],
  ["what is none", "nonsense"],
] as const) {
  test(`unexpected bytes on an idle connection close it: ${what}`, async (t) => {
    const { upstream, server } = await serverRig(t, (request) =>
      request.socket.write(paid(idIn(request))),
    );
    await pay(upstream, "1");
    const { socket } = server.requests[0]!;
    const closed = once(socket, "close");
    socket.write(bytes);
    await closed;
    assert.equal((await pay(upstream, "2")).externalId, "2");
    assert.equal(server.connections, 2);
  });
}

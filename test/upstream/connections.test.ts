import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { GatewayError } from "../../src/errors.ts";
import { GetOperationRequestSchema } from "../../src/gen/payments/v1/operation_service_pb.ts";
import { reportTo } from "../../src/report.ts";
import type { Upstream } from "../../src/upstream/upstream.ts";
import { createPayment, failureOf, getPayout, moneyCalls, patient, rig, serverRig } from "./rig.ts";
import { json, type Script, scriptedServer, type WireRequest } from "./scripted-server.ts";

const idIn = ({ body }: WireRequest): string => JSON.parse(body).external_id;

const paid = (externalId: string) =>
  json(200, `{"external_id":"${externalId}","is_success":true,"details":{"status":"success"}}`);

const pay = (upstream: Upstream, externalId: string) =>
  createPayment(upstream, patient, externalId);

/**
 * Answers each request, and every seventh one twice: the second copy precedes the answer to the
 * next request on the same connection, as from a proxy that repeats an answer it believes lost.
 */
function oneTooMany(): Script {
  const owed = new Map<number, string>();
  let count = 0;
  return (request) => {
    const answer = paid(idIn(request));
    const late = owed.get(request.connection) ?? "";
    owed.set(request.connection, ++count % 7 === 0 ? answer : "");
    request.socket.write(late + answer);
  };
}

const calls = 600;
const atOnce = 8;

/** Makes `calls` calls, `atOnce` at a time. */
async function inTurns(call: (externalId: string) => Promise<void>): Promise<void> {
  const ids = Array.from({ length: calls }, (_, n) => `order-${n}`);
  const turn = async () => {
    for (let id = ids.shift(); id !== undefined; id = ids.shift()) await call(id);
  };
  await Promise.all(Array.from({ length: atOnce }, turn));
}

test("no call gets another call's result when the service repeats answers", async (t) => {
  const { upstream, settled, server } = await serverRig(t, oneTooMany());
  let mixed = 0;
  let unknown = 0;
  await inTurns(async (id) => {
    try {
      const payment = await pay(upstream, id);
      if (payment.externalId !== id) mixed++;
    } catch (error) {
      assert.ok(error instanceof GatewayError && error.details.outcomeUnknown, String(error));
      unknown++;
    }
  });
  assert.equal(mixed, 0);
  assert.ok(unknown >= 1 && unknown <= atOnce, `${unknown} outcomes unknown`);
  assert.equal(settled.length, calls);
  // After the first mix-up, each request has its own connection.
  assert.ok(server.connections > calls / 2, `${server.connections} connections`);
});

test("an answer with another external_id is discarded, and connections are not reused for 10 min", async (t) => {
  let nowMs = 0;
  const mixUps: string[] = [];
  const faults: (string | undefined)[] = [];
  const server = await scriptedServer((request) => {
    const other = server.requests.length === 2;
    request.socket.write(paid(other ? "another" : idIn(request)));
  });
  t.after(() => server.close());
  const { upstream } = rig(t, server.url, {
    now: () => nowMs,
    report: reportTo({
      mixUp: ({ endpoint }) => void mixUps.push(endpoint),
      upstreamCall: ({ fault }) => void faults.push(fault),
    }),
  });
  const connectionsOf = () => server.requests.map(({ connection }) => connection);

  const paidOne = async (id: string) => {
    await pay(upstream, id);
    // A connection becomes free one turn of the event loop after its answer.
    await delay(5);
  };
  await paidOne("1");
  const closed = once(server.requests[0]!.socket, "close");
  const error = await failureOf(pay(upstream, "2"));
  assert.equal(error.code, "UNKNOWN");
  assert.deepEqual(error.details.outcomeUnknown, { externalId: "2" });
  assert.deepEqual(mixUps, ["POST /api/payments/v1/new"]);
  assert.deepEqual(faults, [undefined, undefined], "the mix-up is told once");
  await closed;

  nowMs = 599_999;
  for (const id of ["3", "4"]) await paidOne(id);
  assert.deepEqual(connectionsOf(), [0, 0, 1, 2]);
  nowMs = 600_000;
  for (const id of ["5", "6", "7"]) await paidOne(id);
  assert.deepEqual(connectionsOf(), [0, 0, 1, 2, 3, 3, 3]);
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
    const operation = { externalId: "mine", operationId: "o" };
    const reads = [
      getPayout(upstream, patient, "mine"),
      upstream.getOperation(create(GetOperationRequestSchema, operation), patient),
    ];
    for (const { code } of await Promise.all(reads.map(failureOf))) {
      assert.equal(code, "UNAVAILABLE");
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

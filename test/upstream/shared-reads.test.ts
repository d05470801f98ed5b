import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { GatewayError } from "../../src/errors.ts";
import { valuesOf } from "../values-of.ts";
import {
  createPayment,
  failureOf,
  findItems,
  getPayout,
  patient,
  doneOrder as payout,
  serverRig,
} from "./rig.ts";
import { json } from "./scripted-server.ts";

test("identical reads in flight share one request, one token and one answer", async (t) => {
  const { upstream, server, taken, calls } = await serverRig(t, () => {});
  const reads = Array.from({ length: 20 }, () => getPayout(upstream));
  (await server.request(0)).socket.write(payout);
  for (const { status } of await Promise.all(reads)) assert.equal(status, "done");
  assert.deepEqual([server.requests.length, taken.length, calls.length], [1, 1, 1]);
});

test("a read after the answer is a new request", async (t) => {
  const { upstream, server } = await serverRig(t, payout);
  // The second read starts in the continuation of the first read's promise.
  await getPayout(upstream).then(() => getPayout(upstream));
  assert.equal(server.requests.length, 2);
});

test("reads that differ in arguments or in the customer are not shared", async (t) => {
  const { upstream, server } = await serverRig(t, json(200, "[]"));
  const [a, b] = [{ authToken: "a" }, { authToken: "b" }];
  const customers = [a, b, { externalId: "a" }, { externalId: "b" }];
  await Promise.all(customers.map((customer) => findItems(upstream, customer)));
  assert.equal(server.requests.length, 4);
  await Promise.all([a, a].map((customer) => findItems(upstream, customer)));
  assert.equal(server.requests.length, 5);
});

test("each caller takes its own token: reads of two callers are not shared", async (t) => {
  const { upstream, server, taken } = await serverRig(t, payout);
  const callers = [{ name: "shop" }, { name: "back office" }];
  const reads = [...callers, ...callers].map((caller) =>
    getPayout(upstream, { ...patient, caller }),
  );
  await Promise.all(reads);
  assert.equal(server.requests.length, 2);
  assert.deepEqual(valuesOf(taken, "caller"), callers);
  await createPayment(upstream, { ...patient, caller: callers[1]! });
  assert.equal(taken.at(-1)?.caller, callers[1]);
});

test("a caller that leaves a shared read does not end it for the others", async (t) => {
  const { upstream, server } = await serverRig(t, () => {});
  const [first, impatient] = [new AbortController(), new AbortController()];
  const [left, late] = [first, impatient].map(({ signal }) =>
    failureOf(getPayout(upstream, { signal })),
  );
  const stays = [getPayout(upstream), getPayout(upstream)];
  await server.request(0);
  impatient.abort(new DOMException("late", "TimeoutError"));
  assert.equal((await late)?.code, "DEADLINE_EXCEEDED");
  assert.equal(server.requests.length, 1);
  first.abort();
  assert.equal((await left)?.code, "CANCELLED");
  // It was sent for the first one: those that stay send another one, together.
  (await server.request(1)).socket.write(payout);
  for (const { status } of await Promise.all(stays)) assert.equal(status, "done");
  assert.equal(server.requests.length, 2);
});

test("a refusal by the rate limit is that of all who share the read", async (t) => {
  const taken: unknown[] = [];
  const { upstream } = await serverRig(t, payout, {
    take: async ({ deadlineMs }) => {
      taken.push(deadlineMs);
      throw new GatewayError("RESOURCE_EXHAUSTED", "later");
    },
  });
  const reads = [Date.now() + 1_000, undefined, undefined].map((deadlineMs) =>
    failureOf(getPayout(upstream, { ...patient, deadlineMs })),
  );
  for (const error of await Promise.all(reads)) assert.equal(error.code, "RESOURCE_EXHAUSTED");
  assert.deepEqual(taken, [undefined], "the first one's deadline is not that of the others");
});

test("when all callers have left, the socket closes, and a later caller gets a new request", async (t) => {
  const { upstream, server } = await serverRig(t, () => {});
  const callers = [new AbortController(), new AbortController()];
  const left = callers.map(({ signal }) => failureOf(getPayout(upstream, { signal })));
  const { socket } = await server.request(0);
  const closed = once(socket, "close");
  for (const caller of callers) caller.abort();
  const next = getPayout(upstream);
  for (const error of await Promise.all(left)) assert.equal(error.code, "CANCELLED");
  await closed;
  (await server.request(1)).socket.write(payout);
  assert.equal((await next).status, "done");
});

test("a read whose signal is already aborted takes no token and sends no request", async (t) => {
  const { upstream, server, taken } = await serverRig(t, payout);
  const error = await failureOf(getPayout(upstream, { signal: AbortSignal.abort() }));
  assert.equal(error.code, "CANCELLED");
  assert.deepEqual([server.requests.length, taken.length], [0, 0]);
});

test("a failed read fails for all callers that share it", async (t) => {
  const { upstream, server } = await serverRig(t, json(404, '{"code":"transaction_not_found"}'));
  const reads = [1, 2, 3].map(() => failureOf(getPayout(upstream)));
  for (const error of await Promise.all(reads)) assert.equal(error.code, "NOT_FOUND");
  assert.equal(server.requests.length, 1);
});

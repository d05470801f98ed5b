import assert from "node:assert/strict";
import { test } from "node:test";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import type { Ages, NewIntent } from "../../src/ledger/intents.ts";
import { openCalls } from "../open-calls.ts";
import { createMemoryReplicas } from "./create.ts";
import { payment } from "./entries.ts";
import { callBegun, callLost, newCall, started } from "./new-call.ts";
import { isAway } from "./refusals.ts";

/**
 * What two replicas know of calls beside what histories of all sorts show (simulation, exploration):
 * stores know nothing of calls, so memory stands for all.
 */
const account = "default";

function replicas(about: Partial<Ages> = {}) {
  let nowMs = 1_700_000_000_000;
  const ages = { retentionMs: 7 * 86_400_000, firstLookMs: 60_000, giveUpMs: 3_600_000 };
  const [a, b] = createMemoryReplicas({ ...ages, ...about, now: () => nowMs });
  return {
    ...{ a, b },
    pass(ms: number) {
      nowMs += ms;
    },
    begin: (externalId: string, about: Partial<NewIntent> = {}) =>
      callBegun(a, account, { externalId, ...about }),
    lose: (externalId: string) => callLost(a, account, { externalId }),
  };
}

const keyed = (fingerprint = "f", about: Partial<NewIntent> = {}) =>
  newCall({ key: { digest: "key", fingerprints: [fingerprint] }, ...about });
const pendingAs = (subjectId: string) => ({ state: "pending", subjectId, key: "free" }) as const;

test("every lock is released after locksMs where no reconciler gives calls up", async () => {
  const { b, pass, lose } = replicas({ locksMs: 50_000 });
  await lose("order");
  pass(49_999);
  assert.equal((await b.begin(account, newCall())).kind, "inFlight");
  pass(1);
  await callBegun(b, account);
});

test("a key is bound to a method and a request, also by a fingerprint of an earlier password", async () => {
  const { a, b } = replicas();
  const intent = await callBegun(a, account, keyed());
  await a.end(account, intent, { state: "closed", key: Buffer.from("answer") });
  assert.equal((await b.begin(account, keyed("other"))).kind, "keyReused");
  const other = keyed("f", { method: "ConfirmPayment" });
  assert.equal((await b.begin(account, other)).kind, "keyReused");
  const rotated = { digest: "key", fingerprints: ["new", "f"] };
  assert.equal((await b.begin(account, keyed("", { key: rotated }))).kind, "keyAnswered");
});

test("a key belongs to one method, even if requests of two methods have the same bytes", async () => {
  const { a, b } = replicas();
  started(await a.begin(account, keyed("f", { method: "CreatePayment" })));
  assert.equal(
    (await b.begin(account, keyed("f", { method: "ConfirmPayment" }))).kind,
    "keyReused",
  );
});

test("a late refusal as already paid does not make its own call the one that paid", async () => {
  const { a, b, pass, begin } = replicas();
  const asker = await begin("order", { leaseMs: 3_000 });
  pass(3_000);
  const paid = { paymentId: "p" };
  await a.end(account, asker, { state: "closed", key: "free", paid });
  assert.deepEqual((await b.known(account, EventKind.PAYMENT, "order")).operations, []);
});

test("an external_id that is said to be paid settles a lost call, although an attempt before it failed", async () => {
  const { a, b, lose } = replicas();
  await a.append(account, payment({ externalId: "order", paymentId: "p0", status: "failure" }));
  const lost = await lose("order");
  await a.looked(account, lost, { inMs: 60_000, checks: 1, notFound: 0, paid: {} });
  const { operations, calls } = await b.known(account, EventKind.PAYMENT, "order");
  assert.deepEqual([operations.map(({ status }) => status), calls], [["failure", "success"], []]);
});

test("a late call takes no lock from another, and neither does giving up the other one", async () => {
  const { a, b, lose } = replicas();
  const late = newCall();
  const running = started(await a.begin(account, newCall()));
  await b.adopt(account, late, 1_000);
  const { calls } = await b.known(account, EventKind.PAYMENT, "order");
  const adopted = calls.find(({ id }) => id === late.id) ?? assert.fail();
  await b.end(account, adopted, { state: "closed", key: "free" });
  assert.equal((await b.begin(account, newCall())).kind, "inFlight", "the first one's lock");
  await a.end(account, running, { state: "closed", key: "free" });

  const lost = await lose("order");
  await b.adopt(account, newCall(), 1_000);
  await b.giveUp(account, lost);
  assert.equal((await b.begin(account, newCall())).kind, "inFlight", "the adopted one's lock");
});

test("the ids of the last ten calls that ended are kept, and no more", async () => {
  const { a, b, begin } = replicas();
  for (let nth = 0; nth <= 10; nth++) {
    await a.end(account, await begin("order", { id: `${nth}` }), { state: "closed", key: "free" });
  }
  await assert.rejects(b.begin(account, newCall({ id: "1" })), isAway);
  started(await b.begin(account, newCall({ id: "0" })));
});

test("a call whose replica is gone counts as unknown, and keeps its key and lock", async () => {
  const { a, b, pass } = replicas();
  const intent = await callBegun(a, account, keyed("f", { leaseMs: 3_000 }));
  assert.equal((await b.begin(account, keyed())).kind, "keyRunning");
  pass(3_000);
  assert.equal((await b.begin(account, keyed())).kind, "keyUnknown");
  assert.equal((await b.begin(account, newCall())).kind, "inFlight");
  const [due] = await b.due(account, 10);
  assert.equal(due?.id, intent.id);
  assert.deepEqual(
    (await b.unsettled(account)).map(({ id, startedAtMs }) => [id, startedAtMs]),
    [[intent.id, intent.startedAtMs]],
  );
});

test("an ending that is repeated or late is ignored", async () => {
  const { a, b, pass, begin } = replicas();
  const intent = await begin("order");
  const known = async () =>
    (await openCalls(b, account)).map(({ state, checks }) => [state, checks]);
  await a.end(account, intent, pendingAs("p1"));
  await a.looked(account, intent, { inMs: 60_000, checks: 2, notFound: 0 });
  await a.end(account, intent, pendingAs("p1"));
  await a.end(account, intent, { state: "unknown" });
  assert.deepEqual(await known(), [["pending", 2]]);
  const { marks } = await b.known(account, EventKind.PAYMENT, "order");
  assert.deepEqual(marks, ["p1"]);
  await b.end(account, intent, { state: "closed", key: "keep" });
  await a.end(account, intent, { state: "unknown" });
  await a.looked(account, intent, { inMs: 0, checks: 3, notFound: 0 });
  await a.giveUp(account, intent);
  pass(60_000);
  assert.deepEqual([await known(), await b.due(account, 10)], [[], []]);
});

test("what may hold a lock is due before pending calls that are due longer", async () => {
  const { a, b, pass, begin, lose } = replicas({ firstLookMs: 0 });
  const ids = async (limit: number) =>
    (await b.due(account, limit)).map(({ externalId }) => externalId);
  for (const name of ["0", "1"]) {
    await a.end(account, await begin(name), pendingAs(`p${name}`));
    pass(1);
  }
  const lost = await lose("lost");
  assert.deepEqual([await ids(1), await ids(2)], [["lost"], ["lost", "0"]]);
  await a.looked(account, lost, { inMs: 60_000, checks: 1, notFound: 0 });
  assert.deepEqual(await ids(10), ["0", "1"]);
});

test("of unsettled calls those that were given up come first, then unknown, then pending ones", async () => {
  const { a, b, begin, lose } = replicas();
  await a.end(account, await begin("pending"), pendingAs("p"));
  await lose("unknown");
  const abandoned = await lose("given up");
  await a.giveUp(account, abandoned);
  await begin("running");
  const intents = await b.unsettled(account);
  const told = intents.map(({ externalId, needsOperator }) => [externalId, needsOperator]);
  assert.deepEqual(told, [
    ["given up", true],
    ["unknown", false],
    ["pending", false],
  ]);
  assert.equal((intents[1]?.dueMs ?? 0) - (intents[1]?.startedAtMs ?? 0), 60_000);
  await a.end(account, abandoned, { state: "closed", key: "keep" });
  assert.equal((await b.unsettled(account)).length, 2);
  assert.deepEqual(await b.unsettled("other"), []);
});

test("a call that was given up stays visible for a week, however short events are kept", async () => {
  const { a, b, pass, lose } = replicas({ retentionMs: 1_000 });
  await a.giveUp(account, await lose("order"));
  pass(7 * 86_400_000);
  assert.equal((await openCalls(b, account))[0]?.needsOperator, true);
});

test("those that were given up, however many, hide no call of unknown outcome", async () => {
  const { a, b, lose } = replicas();
  for (let n = 0; n < 1_000; n++) await a.giveUp(account, await lose(`given up ${n}`));
  await lose("unknown");
  const told = await b.unsettled(account);
  assert.deepEqual([told.length, told.at(-1)?.externalId], [1_001, "unknown"]);
});

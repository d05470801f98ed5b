import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import type { Ages, NewIntent } from "../../src/ledger/intents.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { MoneyMethod } from "../../src/model/money-methods.ts";
import { newCall, started } from "../ledger/new-call.ts";
import { openCalls } from "../open-calls.ts";

/** Makes the stores of two replicas with the same intents, which no earlier store shares. */
export type IntentStoreFactory = (options: Ages) => Promise<readonly [Ledger, Ledger]>;

/** Tests what every `Ledger` must do, on real clocks: it polls until time has passed. */
export function testIntentStore(name: string, make: IntentStoreFactory): void {
  const account = "default";

  const usual: Ages = { retentionMs: 7 * 86_400_000, firstLookMs: 60_000, giveUpMs: 3_600_000 };

  async function stores(t: TestContext, options: Partial<Ages> = {}) {
    const pair = await make({ ...usual, ...options });
    t.after(() => Promise.all(pair.map((store) => store.close())));
    return pair;
  }

  const keyed = (fingerprint = "f", about: Partial<NewIntent> = {}) =>
    newCall({ key: { digest: "key", fingerprints: [fingerprint] }, ...about });

  const openOf = (store: Ledger) => openCalls(store, account, EventKind.PAYMENT, "order");
  const marksOf = async (store: Ledger) =>
    (await store.known(account, EventKind.PAYMENT, "order")).marks;

  describe(`${name} as an intent store`, { concurrency: true }, () => {
    it("records an intent for all replicas before it permits the call", async (t) => {
      const [a, b] = await stores(t);
      const { given: _, ...intent } = started(await a.begin(account, newCall()));
      assert.deepEqual(await openOf(b), [intent]);
      assert.equal(intent.state, "running");
      assert.deepEqual(await openCalls(b, "other", EventKind.PAYMENT, "order"), []);
      assert.deepEqual(await openCalls(b, account, EventKind.PAYOUT, "order"), []);
    });

    for (const [what, make, refusal] of [
      ["calls", newCall, "inFlight"],
      ["calls with one key", keyed, "keyRunning"],
    ] as const) {
      it(`starts only one of a hundred concurrent ${what} on two replicas`, async (t) => {
        const pair = await stores(t);
        const begun = await Promise.all(
          Array.from({ length: 100 }, (_, n) => pair[n % 2 ? 1 : 0].begin(account, make())),
        );
        const kinds = begun.map(({ kind }) => kind);
        assert.equal(kinds.filter((kind) => kind === "started").length, 1);
        assert.equal(kinds.filter((kind) => kind === refusal).length, 99);
      });
    }

    it("keeps the lock while the outcome is unknown, not while it is pending", async (t) => {
      const [a, b] = await stores(t);
      const first = started(await a.begin(account, newCall()));
      await a.end(account, first, { state: "unknown" });
      assert.equal((await b.begin(account, newCall())).kind, "inFlight");
      const pending = { state: "pending", subjectId: "p1", key: "keep" } as const;
      await b.end(account, first, pending);
      started(await a.begin(account, newCall()));
      assert.deepEqual(await marksOf(b), ["p1"], "what earlier attempts do is not its doing");
      const open = await openOf(b);
      assert.deepEqual(
        open.map(({ state, subjectId }) => [state, subjectId]),
        [
          ["pending", "p1"],
          ["running", ""],
        ],
      );
    });

    it("has a lock for each method, by kind and external_id", async (t) => {
      const [a, b] = await stores(t);
      const methods: MoneyMethod[] = [
        "CreatePayment",
        "CreateRecurrentPayment",
        "ConfirmPayment",
        "RequestPayout",
      ];
      for (const method of methods) {
        const intent = started(await a.begin(account, newCall({ method })));
        await a.end(account, intent, { state: "unknown" });
        assert.equal((await b.begin(account, newCall({ method }))).kind, "inFlight");
        started(await b.begin(account, newCall({ method, externalId: "another" })));
      }
    });

    it("releases the lock of a call that is given up, and keeps its intent for the operator", async (t) => {
      const [a, b] = await stores(t, { firstLookMs: 0 });
      const first = started(await a.begin(account, newCall()));
      await a.end(account, first, { state: "unknown" });
      await b.giveUp(account, first);
      assert.deepEqual(await a.due(account, 10), []);
      const [open] = await openOf(b);
      assert.equal(open?.needsOperator, true);
      started(await b.begin(account, newCall()));
      await a.giveUp(account, first);
      assert.equal(
        (await a.begin(account, newCall())).kind,
        "inFlight",
        "the lock of another call",
      );
    });

    it("releases every lock after locksMs where no reconciler gives calls up", async (t) => {
      const [a, b] = await stores(t, { locksMs: 50 });
      const intent = started(await a.begin(account, newCall()));
      await a.end(account, intent, { state: "unknown" });
      while ((await b.begin(account, newCall())).kind !== "started") await delay(5);
    });

    it("keeps a key's answer when another replica then ends the call as unknown", async (t) => {
      const [a, b] = await stores(t);
      const answer = Buffer.from("answer");
      const intent = started(await a.begin(account, keyed()));
      await a.end(account, intent, { state: "pending", subjectId: "p1", key: answer });
      await b.end(account, intent, { state: "unknown" });
      assert.deepEqual(await b.begin(account, keyed()), { kind: "keyAnswered", answer });
    });

    it("refuses a key for another request, before and after the first call's answer", async (t) => {
      const [a, b] = await stores(t);
      const intent = started(await a.begin(account, keyed()));
      assert.equal((await b.begin(account, keyed("other"))).kind, "keyReused");
      await a.end(account, intent, { state: "closed", key: Buffer.from("answer") });
      assert.equal((await b.begin(account, keyed("other"))).kind, "keyReused");
      const rotated = { digest: "key", fingerprints: ["new", "f"] };
      assert.equal((await b.begin(account, keyed("", { key: rotated }))).kind, "keyAnswered");
    });

    it("refuses a key that was used with another method, until the key is freed", async (t) => {
      const [a, b] = await stores(t);
      const use = (method: MoneyMethod, externalId: string) => keyed("f", { method, externalId });
      const paid = started(await a.begin(account, use("CreatePayment", "one")));
      assert.equal((await b.begin(account, use("ConfirmPayment", "two"))).kind, "keyReused");
      started(await b.begin("other", use("ConfirmPayment", "two")));
      await a.end(account, paid, { state: "closed", key: "free" });
      started(await b.begin(account, use("ConfirmPayment", "two")));
      assert.equal((await a.begin(account, use("CreatePayment", "one"))).kind, "keyReused");
    });

    it("answers a key of unknown outcome with unknown even after the call is settled", async (t) => {
      const [a, b] = await stores(t);
      const intent = started(await a.begin(account, keyed()));
      await a.end(account, intent, { state: "unknown" });
      assert.equal((await b.begin(account, keyed())).kind, "keyUnknown");
      await b.end(account, intent, { state: "closed", key: "keep" });
      assert.equal((await b.begin(account, keyed())).kind, "keyUnknown");
    });

    it("treats a call whose replica is gone as unknown, and keeps its key and lock", async (t) => {
      const [a, b] = await stores(t);
      const intent = started(await a.begin(account, keyed("f", { leaseMs: 3_000 })));
      assert.equal((await b.begin(account, keyed())).kind, "keyRunning");
      while ((await b.due(account, 10)).length === 0) await delay(5);
      assert.equal((await b.begin(account, keyed())).kind, "keyUnknown");
      assert.equal((await b.begin(account, newCall())).kind, "inFlight");
      assert.deepEqual(
        (await b.due(account, 10)).map(({ id }) => id),
        [intent.id],
      );
      const { intents, total } = await b.unsettled(account);
      assert.deepEqual([total, intents[0]?.startedAtMs], [1, intent.startedAtMs]);
    });

    it("takes neither key nor lock when the other is held", async (t) => {
      const [a, b] = await stores(t);
      const holder = started(await a.begin(account, newCall()));
      assert.equal((await b.begin(account, keyed())).kind, "inFlight");
      await a.end(account, holder, { state: "closed", key: "free" });
      const intent = started(await b.begin(account, keyed()));
      assert.equal((await a.begin(account, keyed())).kind, "keyRunning", "the key tells first");
      await b.end(account, intent, { state: "closed", key: "free" });
    });

    it("ignores an ending that is repeated or late", async (t) => {
      const [a, b] = await stores(t, { firstLookMs: 0 });
      const intent = started(await a.begin(account, newCall()));
      const pending = { state: "pending", subjectId: "p1", key: "keep" } as const;
      const known = async () =>
        (await openOf(b)).map(({ state, subjectId, checks }) => [state, subjectId, checks]);
      await a.end(account, intent, pending);
      await a.looked(account, intent, { inMs: 60_000, checks: 2, notFound: 0 });
      await a.end(account, intent, pending);
      await a.end(account, intent, { state: "unknown" });
      assert.deepEqual(await known(), [["pending", "p1", 2]]);
      assert.deepEqual(await marksOf(b), ["p1"]);
      assert.deepEqual(await b.due(account, 10), []);
      await b.end(account, intent, { state: "closed", key: "keep" });
      await a.end(account, intent, { state: "unknown" });
      await a.looked(account, intent, { inMs: 0, checks: 3, notFound: 0 });
      await a.giveUp(account, intent);
      assert.deepEqual(await known(), []);
      assert.deepEqual(await b.due(account, 10), []);
    });

    it("lists what may hold a lock before pending intents that are due longer", async (t) => {
      const [a, b] = await stores(t, { firstLookMs: 0 });
      const ids = (limit: number) =>
        b.due(account, limit).then((due) => due.map(({ externalId }) => externalId));
      const make = async (externalId: string) =>
        started(await a.begin(account, newCall({ externalId })));
      for (const [n, subjectId] of ["p1", "p2"].entries()) {
        await a.end(account, await make(`${n}`), { state: "pending", subjectId, key: "free" });
        while ((await ids(10)).length <= n) await delay(1);
      }
      const lost = await make("lost");
      await a.end(account, lost, { state: "unknown" });
      while ((await ids(10)).length < 3) await delay(1);
      assert.deepEqual([await ids(1), await ids(2)], [["lost"], ["lost", "0"]]);
      await a.looked(account, lost, { inMs: 60_000, checks: 1, notFound: 0 });
      assert.deepEqual(await ids(10), ["0", "1"]);
    });

    it("lists unsettled calls: given up first, then unknown, then pending", async (t) => {
      const [a, b] = await stores(t, { firstLookMs: 5_000 });
      const make = async (externalId: string) =>
        started(await a.begin(account, newCall({ externalId })));
      const pending = await make("pending");
      await a.end(account, pending, { state: "pending", subjectId: "p", key: "free" });
      const unknown = await make("unknown");
      await a.end(account, unknown, { state: "unknown" });
      const abandoned = await make("given up");
      await a.end(account, abandoned, { state: "unknown" });
      await a.giveUp(account, abandoned);
      await make("running");
      const told = await b.unsettled(account, 10);
      assert.equal(told.total, 3);
      assert.deepEqual(
        told.intents.map(({ externalId, needsOperator }) => [externalId, needsOperator]),
        [
          ["given up", true],
          ["unknown", false],
          ["pending", false],
        ],
      );
      const [, second] = told.intents;
      const untilMs = (second?.dueMs ?? 0) - (second?.startedAtMs ?? 0);
      assert.ok(untilMs >= 5_000 && untilMs < 60_000, `${untilMs}`);
      assert.equal((await b.unsettled(account, 1)).intents.length, 1);
      await a.end(account, abandoned, { state: "closed", key: "keep" });
      assert.equal((await b.unsettled(account, 10)).total, 2);
      assert.deepEqual(await b.unsettled("other", 10), { intents: [], total: 0 });
    });
  });
}

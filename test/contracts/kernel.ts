import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type {
  AccountKernel,
  Commit,
  Committed,
  IndexChange,
  Kernel,
  RecordChange,
  Row,
} from "../../src/stores/kernel.ts";
import { until } from "../until.ts";
import { valuesOf } from "../values-of.ts";

/** Kernels with one new, empty store; each counts as a process, where a store has several. */
export interface KernelHarness {
  readonly kernel: Kernel;
  readonly peer: Kernel;
  /** Removes the members of an index whose records have expired, as the store does at intervals. */
  sweep(account: string, index: string): Promise<void>;
  stop(): Promise<void>;
}

/** Checks every promise of `Kernel` on a store. */
export function testKernel(name: string, open: () => Promise<KernelHarness>): void {
  describe(`the kernel ${name}`, () => {
    let harness: KernelHarness;
    before(async () => {
      harness = await open();
    });
    after(() => harness.stop());

    let accounts = 0;
    let commits = 0;

    function fresh(): { one: AccountKernel; peer: AccountKernel } {
      const account = `account-${accounts++}`;
      return { one: harness.kernel.account(account), peer: harness.peer.account(account) };
    }
    const commitOf = (about: Partial<Commit> = {}): Commit => ({
      ...{ token: `token${commits++}`, records: [], events: [], indexes: [], ...about },
    });
    const put = (about: Partial<RecordChange> = {}): RecordChange => ({
      ...{ key: "k", was: "", expected: new Map(), attachments: new Map(), flags: new Map() },
      ...{ keepMs: 600_000, text: "text", ...about },
    });
    const event = (topic: string, text: string) => ({ topic, bytes: Buffer.from(text) });
    const flag = (value: string) => new Map([["f", value]]);
    const textOf = ({ bytes }: Row) => Buffer.from(bytes).toString();
    async function done(committing: Promise<Committed>) {
      const committed = await committing;
      assert.ok(committed.kind === "committed", committed.kind);
      return committed;
    }
    /** Commits changes of records. @returns the version that they have then */
    async function write(of: AccountKernel, ...records: Partial<RecordChange>[]) {
      const commit = commitOf({ records: records.map(put) });
      await done(of.commit(commit));
      return commit.token;
    }
    async function stored(of: AccountKernel, key = "k") {
      const [record] = (await of.read([key])).records;
      assert.ok(record);
      return record;
    }
    const boundsOf = async (of: AccountKernel) => (await of.page(undefined, undefined, 0)).bounds;
    /** Appends an event for each text, each in a commit of its own. */
    async function append(of: AccountKernel, topic: string, ...texts: string[]) {
      const cursors: string[] = [];
      for (const text of texts) {
        const { cursors: own } = await done(of.commit(commitOf({ events: [event(topic, text)] })));
        cursors.push(...own);
      }
      return cursors;
    }
    const countOf = async (of: AccountKernel, index = "i") =>
      (await of.range([index], { limit: 999 })).length;
    const add = (member: string, score: number | undefined, about: Partial<IndexChange> = {}) =>
      commitOf({ indexes: [{ index: "i", member, score, ...about }] });

    it("reads an unknown record as empty", async () => {
      const { one } = fresh();
      assert.deepEqual(await stored(one), {
        ...{ key: "k", version: "", text: "", attachments: new Map() },
      });
    });

    it("stores records, events and indexes in one commit, for other processes too", async () => {
      const { one, peer } = fresh();
      const commit = commitOf({
        records: [put({ attachments: new Map([["a", Buffer.from([0, 255])]]) }), put({ key: "l" })],
        events: [event("t", "first"), event("t", "second")],
        indexes: [{ index: "i", member: "m", score: 5 }],
      });
      const { cursors } = await done(one.commit(commit));
      const { version, text, attachments } = await stored(peer);
      assert.deepEqual([version, text], [commit.token, "text"]);
      assert.deepEqual([...(attachments.get("a") ?? [])], [0, 255]);
      assert.equal((await stored(peer, "l")).text, "text");
      assert.equal(await countOf(peer), 1);
      const { rows } = await peer.page("t", undefined, 10);
      assert.deepEqual(rows.map(textOf), ["first", "second"]);
      assert.deepEqual(valuesOf(rows, "cursor"), cursors);
    });

    it("stores nothing if one record has another version, and returns all as they are", async () => {
      const { one, peer } = fresh();
      const version = await write(one, { text: "old", flags: flag("1") });
      const refused = await peer.commit(
        commitOf({
          records: [put({ key: "other" }), put({ expected: flag("0") })],
          events: [event("t", "lost")],
          indexes: [{ index: "i", member: "m", score: 1 }],
        }),
      );
      assert.ok(refused.kind === "conflict");
      assert.deepEqual(refused.records, [
        { key: "other", version: "", text: "", flags: new Map() },
        { key: "k", version, text: "old", flags: flag("1") },
      ]);
      assert.equal((await stored(one, "other")).text, "");
      assert.deepEqual((await one.page(undefined, undefined, 10)).rows, []);
      assert.equal(await countOf(one), 0);
    });

    it("lets one of several commits on the same version through", async () => {
      const { one, peer } = fresh();
      const all = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          (n % 2 ? one : peer).commit(commitOf({ records: [put({ text: `${n}` })] })),
        ),
      );
      assert.equal(all.filter(({ kind }) => kind === "committed").length, 1);
    });

    it("checks a record that the commit does not change", async () => {
      const { one } = fresh();
      const first = await write(one, {});
      const check = put({ text: undefined });
      const stale = await one.commit(commitOf({ records: [check], events: [event("t", "x")] }));
      assert.equal(stale.kind, "conflict");
      await write(one, { ...check, was: first });
      const { version, text } = await stored(one);
      assert.deepEqual([version, text], [first, "text"]);
    });

    it("checks flags, keeps them over changes, and forgets them with the record", async () => {
      const { one } = fresh();
      const first = await write(one, { flags: flag("1") });
      const unset = { expected: flag("") };
      const wrong = await one.commit(commitOf({ records: [put({ ...unset, was: first })] }));
      assert.ok(wrong.kind === "conflict");
      assert.deepEqual(wrong.records[0]?.flags, flag("1"));
      const second = await write(one, { expected: flag("1"), was: first, text: "new" });
      await write(one, { expected: flag("1"), was: second, text: "" });
      assert.equal((await stored(one)).version, "");
      await write(one, unset);
    });

    it("sets and removes single attachments, and forgets them with the record", async () => {
      const { one } = fresh();
      const bytes = (texts: Record<string, string | undefined>) => ({
        attachments: new Map(
          Object.entries(texts).map(([name, text]) => [
            name,
            text === undefined ? undefined : Buffer.from(text),
          ]),
        ),
      });
      const first = await write(one, bytes({ a: "1", b: "2" }));
      const second = await write(one, { was: first, ...bytes({ a: undefined, c: "3" }) });
      assert.deepEqual([...(await stored(one)).attachments.keys()].sort(), ["b", "c"]);
      await write(one, { was: second, text: "" });
      await write(one, {});
      assert.equal((await stored(one)).attachments.size, 0);
    });

    it("puts places and its clock where a record's text names them", async () => {
      const { one } = fresh();
      const token = "placeholders0";
      const { cursors, nowMs } = await done(
        one.commit({
          ...commitOf({ events: Array.from({ length: 11 }, (_, n) => event("t", `${n}`)) }),
          ...{ token, records: [put({ text: `${token}:10 ${token}:1 ${token}:now ${token}:1` })] },
        }),
      );
      const [second, last] = [cursors[1], cursors[10]].map((cursor) => cursor?.slice(0, 18));
      assert.equal((await stored(one)).text, `${last} ${second} ${nowMs} ${second}`);
    });

    it("keeps a record for its time after the last change, and no longer", async () => {
      const { one } = fresh();
      // More than a few records that stay, changed before the one that goes.
      const staying = Array.from({ length: 20 }, (_, n) => ({ key: `stays-${n}` }));
      await write(one, ...staying, { keepMs: 1, attachments: new Map([["a", Buffer.from("1")]]) });
      await until(async () => (await stored(one)).version === "");
      assert.equal((await stored(one)).attachments.size, 0);
      assert.equal((await stored(one, "stays-0")).text, "text");
      await write(one, {});
      assert.equal((await stored(one)).attachments.size, 0);
    });

    it("keeps one order of all events, and cursors grow in it", async () => {
      const { one, peer } = fresh();
      const all = await Promise.all(
        Array.from({ length: 20 }, (_, n) => append(n % 2 ? one : peer, `t${n % 3}`, `${n}`)),
      );
      const { rows, upTo, bounds } = await one.page(undefined, undefined, 100);
      const cursors = rows.map(({ cursor }) => cursor);
      assert.deepEqual(cursors, [...cursors].sort());
      assert.deepEqual(new Set(cursors), new Set(all.flat()));
      assert.deepEqual([upTo, bounds.tail], [cursors.at(-1), cursors.at(-1)]);
      assert.deepEqual(await boundsOf(peer), bounds);
    });

    it("pages through the log and through one topic", async () => {
      const { one } = fresh();
      const [a] = await append(one, "t", "a");
      const [b] = await append(one, "u", "b");
      const [c] = await append(one, "t", "c");
      const [d] = await append(one, "u", "d");
      const first = await one.page(undefined, undefined, 2);
      assert.deepEqual([first.rows.map(textOf), first.upTo], [["a", "b"], b]);
      const rest = await one.page(undefined, first.upTo, 2);
      assert.deepEqual([rest.rows.map(textOf), rest.upTo], [["c", "d"], d]);
      const cut = await one.page("t", undefined, 1);
      assert.deepEqual([cut.rows.map(textOf), cut.upTo], [["a"], a]);
      const topic = await one.page("t", a, 2);
      assert.deepEqual([topic.rows.map(textOf), topic.upTo], [["c"], d]);
      assert.deepEqual((await one.page("none", undefined, 2)).rows, []);
      assert.ok(c);
    });

    it("finds the newest events of a topic or of all, and those before a cursor", async () => {
      const { one } = fresh();
      assert.deepEqual((await one.page(undefined, undefined, 10, true)).rows, []);
      const [, b, c] = await append(one, "t", "a", "b", "c");
      const [d] = await append(one, "u", "other");
      for (const [topic, others] of [["t", []] as const, [undefined, ["other"]] as const]) {
        const newest = async (limit: number, before?: string) =>
          (await one.page(topic, before, limit, true)).rows.map(textOf);
        assert.deepEqual(await newest(2 + others.length), ["b", "c", ...others]);
        assert.deepEqual(await newest(10), ["a", "b", "c", ...others]);
        assert.deepEqual(await newest(10, d), ["a", "b", "c"]);
        assert.deepEqual(await newest(10, c), ["a", "b"]);
        assert.deepEqual(await newest(1, c), ["b"]);
        assert.deepEqual(await newest(10, b), ["a"]);
        assert.deepEqual(await newest(0), []);
      }
    });

    it("tells a watch each later event, in order, until it is ended", async () => {
      const { one, peer } = fresh();
      await append(one, "t", "before");
      const seen: string[] = [];
      const end = await peer.watch({ row: (row) => void seen.push(textOf(row)), fail() {} });
      const texts = Array.from({ length: 20 }, (_, n) => `${n}`);
      await append(one, "t", ...texts);
      const later = () => seen.filter((text) => text !== "before");
      await until(async () => later().length >= texts.length);
      assert.deepEqual(later(), texts);
      end();
      const count = seen.length;
      const unseen = Promise.withResolvers<void>();
      await peer.watch({ row: () => unseen.resolve(), fail() {} });
      await append(peer, "t", "unseen");
      await unseen.promise;
      assert.equal(seen.length, count);
    });

    it("keeps the members of an index by score", async () => {
      const { one } = fresh();
      for (const [member, score] of Object.entries({ c: 3, a: 1, b: 2 })) {
        await done(one.commit(add(member, score)));
      }
      const members = async (options: Parameters<AccountKernel["range"]>[1]) =>
        (await one.range(["i"], options)).map(({ member, score }) => `${member}${score}`);
      assert.deepEqual(await members({ limit: 9 }), ["a1", "b2", "c3"]);
      assert.deepEqual(await members({ limit: 2 }), ["a1", "b2"]);
      assert.deepEqual(await members({ limit: 9, max: 2 }), ["a1", "b2"]);
      assert.deepEqual(await members({ limit: 9, max: 2, newestFirst: true }), ["b2", "a1"]);
      assert.deepEqual(await members({ limit: 1, newestFirst: true }), ["c3"]);
      await done(one.commit(add("b", 9)));
      await done(one.commit(add("c", undefined)));
      assert.deepEqual(await members({ limit: 9 }), ["a1", "b9"]);
      for (const member of ["a", "unknown"]) await done(one.commit(add(member, undefined)));
      assert.deepEqual([await countOf(one), await countOf(one, "none")], [1, 0]);
    });

    it("takes any text as a member of an index", async () => {
      const { one } = fresh();
      const texts = ["", '"\\u0000\\', "\0\n\u2028", "é\u{1f600}", "[]{}", "half: \ud800"];
      for (const [at, member] of texts.entries()) await done(one.commit(add(member, at)));
      const found = await one.range(["i"], { limit: 9 });
      const wellFormed = (text: string) => text.toWellFormed();
      assert.deepEqual(found.map(({ member }) => member).map(wellFormed), texts.map(wellFormed));
    });

    it("merges indexes as they are at one instant", async () => {
      const { one } = fresh();
      const scores = (await Promise.all(
        Array.from({ length: 40 }, async (_, n) => {
          const index = n % 3 ? "some" : "others";
          const change = { index, member: `m${n}`, score: n };
          await done(one.commit(commitOf({ indexes: [change] })));
          return n;
        }),
      )) as number[];
      const range = async (options: Parameters<AccountKernel["range"]>[1]) =>
        (await one.range(["some", "none", "others"], options)).map(({ score }) => score);
      assert.deepEqual(await range({ limit: 99 }), scores);
      assert.deepEqual(await range({ limit: 3, min: 5 }), [5, 6, 7]);
      assert.deepEqual(await range({ limit: 9, min: 5, max: 7 }), [5, 6, 7]);
      assert.deepEqual(await range({ limit: 3, max: 7, newestFirst: true }), [7, 6, 5]);
      // A member that moves is in one of them at each instant.
      const move = async (from: string, to: string) => {
        const change = { member: "mover", score: 10.5 };
        const away = { ...change, index: from, score: undefined };
        await done(one.commit(commitOf({ indexes: [away, { ...change, index: to }] })));
      };
      await move("others", "some");
      const moving = (async () => {
        for (let n = 0; n < 25; n++) {
          await move("some", "others");
          await move("others", "some");
        }
      })();
      let looks = 0;
      for (let isOver = false; !isOver; looks++) {
        const [over, found] = await Promise.all([
          Promise.race([moving.then(() => true), delay(0, false)]),
          range({ limit: 99, min: 10.5, max: 10.5 }),
        ]);
        assert.deepEqual(found, [10.5]);
        isOver = over;
      }
      assert.ok(looks > 0);
    });

    it("gives each commit that asks for it an instant of its own, in their order", async () => {
      const { one, peer } = fresh();
      let last = 0;
      for (let n = 0; n < 20; n++) {
        const token = `asking${n}`;
        const { instant = 0 } = await done(
          (n % 2 ? one : peer).commit({
            ...commitOf({ indexes: [{ index: "i", member: `m${n}`, score: "instant" }] }),
            ...{ token, records: [put({ key: `k${n}`, text: `since ${token}:instant.` })] },
          }),
        );
        assert.ok(Number.isSafeInteger(instant) && instant > last, `${instant} after ${last}`);
        last = instant;
        assert.equal((await stored(one, `k${n}`)).text, `since ${instant}.`);
      }
      const members = await one.range(["i"], { limit: 99 });
      assert.deepEqual(
        valuesOf(members, "member"),
        Array.from({ length: 20 }, (_, n) => `m${n}`),
      );
      assert.equal(members.at(-1)?.score, last);
      assert.ok(Math.abs(last / 1_000 - one.nowMs()) < 60_000, "in microseconds on its clock");
      const { instant } = await done(one.commit(add("other", 5)));
      assert.equal(instant, undefined);
    });

    it("removes the key of a record from indexes once the record has expired", async () => {
      const { one } = fresh();
      const of = (key: string, keepMs: number) => {
        const indexes = [{ index: "i", member: key, score: "instant" } as const];
        return done(one.commit(commitOf({ records: [put({ key, keepMs })], indexes })));
      };
      for (let n = 0; n < 450; n++) await of(`short ${n}`, 1);
      await of("long", 600_000);
      await done(one.commit(add("no record", 7, { index: "other" })));
      await until(async () => (await stored(one, "short 449")).version === "");
      await harness.sweep(`account-${accounts - 1}`, "i");
      const members = await one.range(["i", "other"], { limit: 999 });
      assert.deepEqual(valuesOf(members, "member"), ["no record", "long"]);
      // A record that comes again under the key of an expired one is no member.
      await of("again", 1);
      await until(async () => (await stored(one, "again")).version === "");
      await harness.sweep(`account-${accounts - 1}`, "i");
      await write(one, { key: "again" });
      assert.equal(await countOf(one), 1);
    });

    it("keeps accounts apart", async () => {
      const { one } = fresh();
      const { one: other } = fresh();
      const seen: Row[] = [];
      await other.watch({ row: (row) => void seen.push(row), fail() {} });
      const commit = commitOf({
        ...{ records: [put()], events: [event("t", "x")] },
        indexes: [{ index: "i", member: "m", score: 1 }],
      });
      await done(one.commit(commit));
      await done(other.commit(add("m", undefined)));
      assert.equal(await countOf(one), 1);
      assert.equal((await stored(other)).version, "");
      assert.deepEqual((await other.page("t", undefined, 9)).rows, []);
      assert.deepEqual((await other.page("t", undefined, 9, true)).rows, []);
      assert.equal(await countOf(other), 0);
      assert.notEqual((await boundsOf(one)).epoch, (await boundsOf(other)).epoch);
      const own = await append(other, "t", "own");
      await until(async () => seen.length > 0);
      assert.deepEqual(valuesOf(seen, "cursor"), own);
    });

    it("ends watches with the error when it is closed", async () => {
      const closing = await open();
      const { promise, resolve } = Promise.withResolvers<Error>();
      await closing.kernel.account("a").watch({ row() {}, fail: resolve });
      const error = new Error("closed");
      await closing.kernel.close(error);
      assert.equal(await promise, error);
      await closing.stop();
    });
  });
}

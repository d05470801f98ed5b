import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it } from "node:test";
import type { Priority } from "../../../src/ratelimit/bucket.ts";
import { budgetRules } from "../../../src/ratelimit/local/budget.ts";
import type { CallerTokens, TakeReply } from "../../../src/ratelimit/redis/shared-budget.ts";
import { infoField } from "../../../src/redis/acknowledged.ts";
import { loadScript } from "../../../src/redis/script.ts";
import { ofSuite } from "../../of-suite.ts";
import { startRedis, withoutRedis } from "../../redis/server.ts";
import { connected } from "../../redis/suite.ts";

const takeTokens = loadScript(
  new URL("../../../src/ratelimit/redis/take-tokens.lua", import.meta.url),
);

const rules = JSON.stringify(budgetRules);

interface Asked extends Partial<Record<Priority, CallerTokens>> {
  readonly answer?: Record<string, number>;
  readonly counted?: number;
  readonly out?: number;
  readonly reserve?: number;
  readonly rejected?: Record<string, number>;
}

const one = { "s:": 1 };

/**
 * Longest time until a token comes back: a second, the margin, and the cell that it is counted in.
 */
const windowMs = 1_055;

describe("the script that takes tokens", { skip: withoutRedis }, () => {
  const server = ofSuite(startRedis);
  const redis = ofSuite(() => connected(server.url));

  it("keeps the next token for money that waits at another replica, not for a read", async () => {
    for (const moneyWaits of [true, false]) {
      const account = accountOf(2);
      await account.ask("one", { money: { "s:": 2 } });
      let passMs = windowMs;
      // Asks again whenever the reply says so, until its turn comes.
      while (moneyWaits) {
        const { money, againMs = 0 } = await account.ask("other", { money: one });
        passMs = againMs;
        if (money.nextMs <= againMs) break;
        account.pass(againMs);
      }
      account.pass(passMs);
      const { read } = await account.ask("one", { read: one });
      const expected = moneyWaits ? {} : one;
      assert.deepEqual(read.granted, expected, "with nobody's money in line a read is served");
      if (moneyWaits) {
        assert.deepEqual((await account.ask("other", { money: one })).money.granted, one);
      }
    }
  });

  it("gives turns as in the worked example of its comment", async () => {
    const account = accountOf(4);
    await account.ask("one", { read: { "s:spent": 4 } });
    // Callers join one after the other, which decides between equal tags.
    const waits: Record<string, number> = {};
    const joins = { "s:A": 3, "s:B": 1, "c:x": 2, "c:y": 2 };
    let reply: TakeReply | undefined;
    for (const [caller, calls] of Object.entries(joins)) {
      waits[caller] = calls;
      reply = await account.ask("one", { read: waits });
      assert.deepEqual(reply.read.granted, {});
    }
    const served: string[] = [];
    while (Object.keys(waits).length > 0) {
      account.pass(reply?.againMs ?? 0);
      reply = await account.ask("one", { read: waits });
      const [caller, ...others] = Object.keys(reply.read.granted);
      assert.deepEqual(others, [], "a turn is one token at so low a rate");
      if (caller === undefined) continue;
      served.push(caller);
      if (--waits[caller]! === 0) delete waits[caller];
    }
    assert.equal(served.join(" "), "s:A s:B c:x s:A c:y s:A c:x c:y");
  });

  it("ignores an answer that is older than one it has used", async () => {
    const account = accountOf(10);
    const { lowered } = await account.ask("one", { money: { "s:": 3 } });
    const hear = async (order: number, limit: number, remaining: number) =>
      account.ask("other", { answer: { order, out: order, lowered, limit, remaining } });
    assert.equal((await hear(3, 20, 10)).limit, 20);
    const { limit, remaining } = await hear(1, 5, 0);
    assert.equal(limit, 20);
    assert.ok(remaining > 0);
    assert.equal((await hear(4, 30, 0)).limit, 30, "a newer one is believed");
  });

  it("gives nothing to any replica for as long as a rejection says", async () => {
    const account = accountOf(2);
    const { order } = await account.ask("one", { money: one });
    await account.ask("one", { rejected: { order: order + 1, ms: 3_000 } });
    account.pass(1_000);
    const { money, remaining } = await account.ask("other", { money: one });
    assert.deepEqual([money.granted, remaining], [{}, 0]);
    // Redis' own clock goes on meanwhile.
    assert.ok(money.nextMs > 0 && money.nextMs <= 2_000, `${money.nextMs} ms`);
    account.pass(2_000);
    assert.deepEqual((await account.ask("other", { money: one })).money.granted, one);
  });

  it("sets a silent replica's share aside once, however many others return", async () => {
    const account = accountOf(10);
    for (const replica of ["one", "two", "three"]) await account.ask(replica, {});
    account.pass(1_200);
    const share = Math.floor((10 * budgetRules.fallbackShare) / 3);
    const { lowered } = await account.ask("one", { out: 0 });
    assert.equal(lowered, 2 * share);
    assert.equal((await account.ask("two", { out: 0 })).lowered, 2 * share);
    // Control: a window later the silent one may have used its share again.
    account.pass(1_200);
    await account.ask("two", {});
    assert.equal((await account.ask("one", { out: 0 })).lowered, 3 * share);
  });

  it("counts the takes that a promoted server has not heard of", async () => {
    const account = accountOf(10);
    const before = await account.ask("one", { money: one });
    await account.copy("before");
    const { counted } = await account.ask("one", { money: { "s:": 3 } });
    await account.copy("before", { back: true });
    const { remaining, lowered } = await account.ask("one", { counted });
    assert.deepEqual([remaining, lowered], [10 - 4, before.lowered + 3]);
    assert.equal((await account.ask("one", { counted })).lowered, lowered, "and once");
  });

  it("takes no longer than in proportion to the callers that wait", async () => {
    /** Redis's processor time for some requests of four replicas, each with so many callers. */
    const costOf = async (callers: number, kind: string) => {
      const account = accountOf(500);
      const askAll = async (times: number) => {
        for (let nth = 0; nth < 4 * times; nth++) {
          const names = Array.from({ length: callers }, (_, at) => `${kind}:${nth % 4}-${at}`);
          const read = Object.fromEntries(names.map((name) => [name, 10]));
          account.pass(10);
          await account.ask(`${nth % 4}`, { read });
        }
      };
      await askAll(2);
      const before = await processorSeconds();
      await askAll(12);
      return (await processorSeconds()) - before;
    };
    for (const kind of ["s", "c"]) {
      // A busy machine makes some rounds dearer, and none cheaper.
      const many: number[] = [];
      const few: number[] = [];
      for (let round = 0; round < 3; round++) {
        many.push(await costOf(64, kind));
        few.push(await costOf(8, kind));
      }
      const times = Math.min(...many) / Math.min(...few);
      assert.ok(times < 7, `${times} times as much for 8 times the callers`);
    }
  });

  async function processorSeconds(): Promise<number> {
    const info = await redis.client.info("cpu");
    const of = (name: string) => Number(infoField(info, `used_cpu_${name}`));
    return of("user") + of("sys");
  }

  /** An account with this limit, for which only `pass` moves the time. */
  function accountOf(limit: number) {
    const key = randomUUID();
    let state = "";
    let passMs = 0;
    return {
      async ask(replica: string, asked: Asked): Promise<TakeReply> {
        const { money = {}, read = {}, ...reported } = asked;
        const request = {
          ...{ replica, state, counted: 0 },
          ...{ limit, reserve: 0, wants: { money, read } },
          ...reported,
        };
        // Sent together with the request, so that a busy machine adds no time.
        const passed = redis.client.eval(PASS, 1, key, passMs);
        passMs = 0;
        const said = await takeTokens.run(redis.client, [key], [JSON.stringify(request), rules]);
        await passed;
        const reply = JSON.parse(String(said)) as TakeReply;
        state = reply.id;
        return reply;
      },
      pass(ms: number): void {
        passMs += ms;
      },
      /** Keeps a copy of the state, or puts it `back`. */
      async copy(name: string, { back = false } = {}): Promise<void> {
        const names = [key, `${key}:${name}`];
        const [from = "", to = ""] = back ? names.reverse() : names;
        await redis.client.copy(from, to, "REPLACE");
      },
    };
  }
});

/** Sets the state's clock to ARGV[1] milliseconds after its last request. */
const PASS = `
local packed = redis.call('GET', KEYS[1])
if not packed then return end
local state = cmsgpack.unpack(packed)
local time = redis.call('TIME')
state.skew = state.last + ARGV[1] - (time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('SET', KEYS[1], cmsgpack.pack(state))`;

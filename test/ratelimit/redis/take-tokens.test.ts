import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import type { Answer } from "../../../src/ratelimit/redis/shared-budget.ts";
import { connectRedis, type RedisConnector } from "../../../src/redis/connect.ts";
import { loadScript } from "../../../src/redis/script.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { type RedisServer, startRedis, until, withoutRedis } from "../../redis/server.ts";

const takeTokens = loadScript(
  new URL("../../../src/ratelimit/redis/take-tokens.lua", import.meta.url),
);

/** The longest that a token is out for: a second, its margin, and the cell that it is counted in. */
const windowMs = 1_055;

describe("the script that takes tokens", { skip: withoutRedis, timeout: 30_000 }, () => {
  let server: RedisServer;
  let redis: RedisConnector;
  before(async () => {
    server = await startRedis();
    redis = connectRedis(new Secret(server.url), () => {});
    await until(async () => redis.client.status === "ready");
  });
  after(async () => {
    await redis.close();
    await server.close();
  });

  it("keeps the next token for another replica's money, and gives a read none", async () => {
    for (const moneyWaits of [true, false]) {
      const account = accountOf(2);
      await account.ask("one", { money: 2 });
      let waitMs = windowMs;
      if (moneyWaits) {
        // It asks again whenever it is told to, until its turn is within a look.
        let again = await account.ask("other", { money: 1 });
        while (again.waitMs! > again.againMs!) {
          account.pass(again.againMs!);
          again = await account.ask("other", { money: 1 });
        }
        waitMs = again.waitMs!;
      }
      account.pass(waitMs);
      const read = await account.ask("one", { reads: 1 });
      assert.equal(read.reads, moneyWaits ? 0 : 1, "with nobody's money in line a read is served");
      if (moneyWaits) assert.equal((await account.ask("other", { money: 1 })).money, 1);
    }
  });

  it("believes no answer that is older than one it has heard", async () => {
    const account = accountOf(10);
    const { lowered } = await account.ask("one", { money: 3 });
    const hear = async (order: number, limit: number, remaining: number) =>
      account.ask("other", { answer: { order, out: order, lowered, limit, remaining } });
    assert.equal((await hear(3, 20, 10)).limit, 20);
    const { limit, remaining } = await hear(1, 5, 0);
    assert.equal(limit, 20);
    assert.ok(remaining > 0);
    assert.equal((await hear(4, 30, 0)).limit, 30, "a newer one is believed");
  });

  it("keeps tokens out for longer after a rejection, and longer still after another", async () => {
    const account = accountOf(1);
    for (const [rejections, outMs] of [50, 100, 200].entries()) {
      const { order, money } = await account.ask("one", { money: 1 });
      assert.equal(money, 1);
      await account.ask("one", { rejected: { order: order + 1, ms: 0 } });
      account.pass(windowMs);
      assert.equal((await account.ask("one", { money: 1 })).money, 0, `rejection ${rejections}`);
      account.pass(outMs);
    }
    // Control: without a rejection the token is back.
    const untroubled = accountOf(1);
    await untroubled.ask("one", { money: 1 });
    untroubled.pass(windowMs);
    assert.equal((await untroubled.ask("one", { money: 1 })).money, 1);
  });

  it("learns once from the rejections of calls that were on their way together", async () => {
    const account = accountOf(2);
    const { order } = await account.ask("one", { money: 2 });
    for (const nth of [1, 2]) {
      await account.ask("one", { rejected: { order: order + nth, ms: 0 } });
    }
    account.pass(windowMs + 50);
    assert.ok((await account.ask("one", { money: 2 })).money > 0);
  });

  /** An account of this limit, in whose life no time passes but by `pass`. */
  function accountOf(limit: number) {
    const key = randomUUID();
    let state = "";
    let passMs = 0;
    return {
      async ask(replica: string, asked: Record<string, unknown>): Promise<Answer> {
        const question = {
          ...{ replica, state, recent: false, returning: false, leaving: false },
          ...{ limit, reserve: 0, money: 0, reads: 0, patienceMs: 5_000, spent: [], unused: [] },
          ...asked,
        };
        // In one go with the question, so that a busy machine adds nothing.
        const passed = redis.client.eval(PASS, 1, key, passMs);
        passMs = 0;
        const said = await takeTokens.run(redis.client, [key], [JSON.stringify(question)]);
        await passed;
        const answer = JSON.parse(String(said)) as Answer;
        state = answer.id;
        return answer;
      },
      pass(ms: number): void {
        passMs += ms;
      },
    };
  }
});

/** Sets the state's clock to so many milliseconds after it was looked at last. */
const PASS = `
local packed = redis.call('GET', KEYS[1])
if not packed then return end
local state = cmsgpack.unpack(packed)
local time = redis.call('TIME')
state.skew = state.last + ARGV[1] - (time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('SET', KEYS[1], cmsgpack.pack(state))`;

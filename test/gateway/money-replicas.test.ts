import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { PaymentState, PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import { type RedisServer, startRedis, withoutRedis } from "../redis/server.ts";
import { until } from "../until.ts";
import { type MoneyUpstream, startMoneyUpstream } from "./money-upstream.ts";
import { password, type Serving, serveBefore } from "./serving.ts";
import { killSpawned } from "./spawn.ts";

/** Number of keys, of callers of each key and of killed calls: 100 in `npm run faults`. */
const size = Number(process.env.MONEY_SIZE ?? 12);
const kills = Number(process.env.MONEY_KILLS ?? 1);

describe("calls that move money, at three gateways on one Redis", {
  skip: withoutRedis,
  timeout: 1_800_000,
}, () => {
  let redis: RedisServer;
  let upstream: MoneyUpstream;
  let replicas: Serving[];

  before(async () => {
    redis = await startRedis();
    upstream = await startMoneyUpstream(password);
    replicas = await Promise.all([start(), start(), start()]);
  });
  after(async () => {
    killSpawned();
    await upstream.close();
    await redis.close();
  });

  const start = () =>
    serveBefore(upstream.url, {
      // Ten thousand calls at once keep cold gateways busy for seconds.
      UPSTREAM_TIMEOUT: "20s",
      RATE_LIMIT_INITIAL: "1000",
      RATE_LIMIT_MAX_WAIT: "1s",
      RECONCILE_AFTER: "500ms",
      REDIS_URL: redis.url,
    });

  test("callers with the same key send one payment, and all get its answer", async (t) => {
    upstream.answerMs = 50;
    const keys = Array.from({ length: size }, (_, n) => `key-${n}`);
    let again = 0;
    /** Repeats a call that a busy gateway did not send: the key makes that safe. */
    const payWithKey = async (replica: Serving, key: string) => {
      for (;;) {
        try {
          return await replica.pay(`none-${key}`, key);
        } catch (error) {
          if (!wasNotSent(error)) throw error;
          again++;
          await delay(50);
        }
      }
    };
    const calls = keys.flatMap((key) =>
      Array.from({ length: size }, (_, n) => payWithKey(replicas[n % 3]!, key)),
    );
    const answers = await Promise.all(calls);
    upstream.answerMs = 0;
    for (const { payment } of answers)
      assert.equal(payment?.details?.status, PaymentStatus.SUCCESS);
    const posts = keys.map((key) => upstream.arrivals.get(`none-${key}`));
    assert.deepEqual(posts, Array(size).fill(1));
    t.diagnostic(
      `${keys.length} keys x ${size} callers x 3 replicas: ${size} POSTs, ${again} came again`,
    );

    for (const [n, key] of keys.entries()) {
      await assert.rejects(replicas[n % 3]!.pay(`none-${key}`, key, "10.11"), {
        code: Code.AlreadyExists,
      });
      const { payment } = await replicas[(n + 1) % 3]!.pay(`none-${key}`, key);
      assert.equal(payment?.details?.paymentId, `p-none-${key}`);
    }
    assert.deepEqual(
      keys.map((key) => upstream.arrivals.get(`none-${key}`)),
      posts,
    );
  });

  for (let round = 0; round < kills; round++) {
    test(`calls of a killed gateway are unknown and locked until they are settled (${round})`, async (t) => {
      const victim = replicas.pop()!;
      const toldBack = `once-kill-${round}`;
      const all = Array.from({ length: size }, (_, n) => `none-kill-${round}-${n}`);
      all.unshift(toldBack);
      upstream.answerMs = 60_000;
      const ended = new Set<string>();
      const calls = all.map((id) => victim.pay(id, id).finally(() => ended.add(id)));
      const over = Promise.allSettled(calls);
      // A gateway that has just started may refuse some calls, which it never sends.
      await until(async () => all.every((id) => upstream.charges.has(id) || ended.has(id)));
      const ids = all.filter((id) => upstream.charges.has(id));
      assert.ok(ids.length > size / 2 && ids.includes(toldBack), `${ids.join()} were sent`);
      await Promise.all([over, victim.kill()]);
      upstream.answerMs = 0;

      const [one] = replicas as [Serving];
      upstream.callbackTo = one.publicUrl;
      const isOpen = async (id: string) => {
        const { outcomeUnknown } = await one.payments.getPayment({ externalId: id });
        assert.equal(outcomeUnknown, true);
        await assert.rejects(one.pay(id), { code: Code.Aborted });
      };
      await isOpen(toldBack);
      await upstream.callBack(toldBack);
      const { state, outcomeUnknown } = await one.payments.getPayment({ externalId: toldBack });
      assert.deepEqual([state, outcomeUnknown], [PaymentState.PAID, false]);
      await assert.rejects(one.pay(toldBack), { code: Code.AlreadyExists }, "the service's word");
      for (const id of ids.filter((id) => id !== toldBack)) await isOpen(id);
      const since = performance.now();
      await Promise.all(ids.map((id) => settled(one, id)));
      t.diagnostic(`${ids.length} settled ${Math.round(performance.now() - since)} ms later`);
      for (const id of ids) {
        await assert.rejects(one.pay(id, id), { code: Code.Unknown }, "remembered as unknown");
        assert.equal(upstream.charges.get(id), 1);
      }
      if (round + 1 < kills) replicas.push(await start());
    });
  }

  test("without Redis a call with a key is refused, and other payments continue", async () => {
    await redis.kill();
    await assert.rejects(replicas[0]!.pay("none-keyed", "k"), { code: Code.Unavailable });
    // Its share of the budget starts empty, since other gateways may have just spent theirs.
    const paying = async () => await replicas[0]!.pay("none-alone").catch(() => undefined);
    let paid: Awaited<ReturnType<typeof paying>>;
    await until(async () => {
      paid = await paying();
      return paid !== undefined;
    });
    const payment = paid?.payment;
    assert.equal(payment?.details?.status, PaymentStatus.SUCCESS);
    assert.equal(upstream.charges.has("none-keyed"), false);
  });

  /** Whether the gateway did not send the call, for lack of the store or of budget. */
  function wasNotSent(error: unknown): boolean {
    const codes: unknown[] = [Code.Unavailable, Code.ResourceExhausted];
    return error instanceof ConnectError && codes.includes(error.code);
  }

  /** Polls until the payment is paid, and asserts that it is never reported as failed. */
  async function settled(replica: Serving, externalId: string): Promise<void> {
    for (;;) {
      const { payment, outcomeUnknown } = await replica.payments.getPayment({ externalId });
      assert.notEqual(payment?.details?.status, PaymentStatus.FAILURE);
      if (!outcomeUnknown && payment?.details?.status === PaymentStatus.SUCCESS) return;
      await delay(50);
    }
  }
});

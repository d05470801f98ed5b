import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GatewayError } from "../../src/errors.ts";
import type { Permit, Priority } from "../../src/ratelimit/bucket.ts";
import { createLocalBucket } from "../../src/ratelimit/queued-bucket.ts";
import { seeded } from "../random.ts";
import {
  fixedWindowUpstream,
  type ModelledUpstream,
  slidingWindowUpstream,
  tokenBucketUpstream,
} from "./modelled-upstream.ts";
import { settled, VirtualClock } from "./virtual-clock.ts";

const LIMIT = 50;
const SECONDS = 20;
const SEEDS = [1, 2];

const models = {
  "a token bucket": tokenBucketUpstream,
  "a fixed window": fixedWindowUpstream,
  "a sliding window": slidingWindowUpstream,
};

for (const [name, model] of Object.entries(models)) {
  describe(`against ${name} at 5 times its limit, the bucket`, () => {
    it("is hardly ever refused and uses the budget", async () => {
      for (const seed of SEEDS) {
        const figures = await simulate({ model, seed });
        report(name, "steady", figures);
        assertGoals(figures);
      }
    });

    it("uses the budget when there is nothing but reads", async () => {
      const figures = await simulate({ model, seed: 1, moneyShare: 0, reserve: 0.5 });
      report(name, "reads only", figures);
      assertGoals(figures);
    });

    it("follows a limit that drops midway", async () => {
      for (const seed of SEEDS) {
        const figures = await simulate({ model, seed, dropTo: 20 });
        report(name, "drop to 20", figures);
        assertGoals(figures);
      }
    });

    it("never lets money wait long behind reads", async () => {
      const figures = await simulate({ model, seed: 1, moneyShare: 0.1 });
      report(name, "a tenth is money", figures);
      assert.equal(figures.refusedMoney, 0);
      assert.ok(figures.longestMoneyWaitMs <= 300, `${figures.longestMoneyWaitMs} ms`);
    });

    it("learns from rejections when latency varies more than its margin", async () => {
      const figures = await simulate({ model, seed: 1, jitterMs: 200 });
      report(name, "wild latency", figures);
      assert.ok(figures.rejected <= 0.01 * figures.sent);
    });

    it("gives way to another client of the same account", async () => {
      for (const seed of SEEDS) {
        const figures = await simulate({ model, seed, othersPerSecond: 20, seconds: 60 });
        report(name, "others use 20 a second", figures);
        assert.ok(figures.rejected <= 0.012 * figures.sent, `${figures.rejected} rejected`);
      }
    });

    it("misses the goals with the bucket ignored (control)", async () => {
      const figures = await simulate({ model, seed: 1, ignoreBucket: true });
      report(name, "bucket ignored", figures);
      assert.throws(() => assertGoals(figures), / of \d+ rejected$/);
    });

    it("misses the goals after a drop with the answers ignored (control)", async () => {
      const figures = await simulate({ model, seed: 1, dropTo: 20, ignoreAnswers: true });
      report(name, "answers ignored", figures);
      assert.throws(() => assertGoals(figures), / of \d+ rejected$/);
    });
  });
}

interface Scenario {
  readonly model: (limit: number) => ModelledUpstream;
  readonly seed: number;
  readonly dropTo?: number;
  readonly moneyShare?: number;
  readonly reserve?: number;
  /** Largest random addition to the latency, each way. */
  readonly jitterMs?: number;
  /** Requests a second of another client, which the bucket does not see. */
  readonly othersPerSecond?: number;
  readonly seconds?: number;
  readonly ignoreBucket?: boolean;
  readonly ignoreAnswers?: boolean;
}

interface Figures {
  offered: number;
  sent: number;
  accepted: number;
  rejected: number;
  /** Rejected, but sent before any answer named the lower limit: no client can avoid these. */
  unforeseeable: number;
  budget: number;
  refusedMoney: number;
  longestMoneyWaitMs: number;
}

async function simulate(scenario: Scenario): Promise<Figures> {
  const { seed, moneyShare = 0.3, reserve = 0.2, jitterMs = 40, seconds = SECONDS } = scenario;
  const random = seeded(seed);
  const clock = new VirtualClock();
  const upstream = scenario.model(LIMIT);
  const bucket = createLocalBucket({ initialLimit: LIMIT, reserve, maxWaitMs: 1_500, clock });
  const signal = new AbortController().signal;
  const figures: Figures = {
    offered: 0,
    sent: 0,
    accepted: 0,
    rejected: 0,
    unforeseeable: 0,
    budget: 0,
    refusedMoney: 0,
    longestMoneyWaitMs: 0,
  };
  let newsAt = Infinity;
  let closing = false;

  const pause = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve));
  const latency = () => pause(10 + random() * jitterMs);

  async function call(priority: Priority): Promise<void> {
    figures.offered++;
    const askedAt = clock.now();
    let permit: Permit | undefined;
    try {
      if (!scenario.ignoreBucket) permit = await bucket.take({ priority, signal });
    } catch (error) {
      assert.ok(error instanceof GatewayError);
      if (closing) return;
      assert.equal(error.code, "RESOURCE_EXHAUSTED");
      if (priority === "money") figures.refusedMoney++;
      return;
    }
    const sentAt = clock.now();
    // Ignores the start: a burst empties the full bucket, which takes a second to refill.
    if (priority === "money" && askedAt > 2_000) {
      figures.longestMoneyWaitMs = Math.max(figures.longestMoneyWaitMs, sentAt - askedAt);
    }
    figures.sent++;
    await latency();
    const { accepted, headers } = upstream.request(clock.now());
    if (accepted) figures.accepted++;
    else figures.rejected++;
    const foreseeable = upstream.limit === LIMIT || sentAt >= newsAt;
    if (!accepted && !foreseeable) figures.unforeseeable++;
    const tellsOfDrop = headers.limit !== String(LIMIT);
    await latency();
    if (tellsOfDrop) newsAt = Math.min(newsAt, clock.now());
    if (scenario.ignoreAnswers) return;
    if (accepted) permit?.observe(headers);
    else permit?.rejected(headers);
  }

  const offer = () => {
    void call(random() < moneyShare ? "money" : "read");
    clock.after((-Math.log(1 - random()) * 1_000) / (5 * LIMIT), offer);
  };
  offer();
  const { othersPerSecond } = scenario;
  if (othersPerSecond !== undefined) {
    const other = () => {
      upstream.request(clock.now());
      clock.after(1_000 / othersPerSecond, other);
    };
    other();
  }
  // Half a second off a whole second, so that the drop falls into the middle of a fixed window.
  const dropMs = (seconds * 1_000) / 2 - 500;
  await clock.run(dropMs);
  if (scenario.dropTo !== undefined) upstream.limit = scenario.dropTo;
  await clock.run(seconds * 1_000 - dropMs);
  figures.budget = (dropMs * LIMIT + (seconds * 1_000 - dropMs) * upstream.limit) / 1_000;
  const result = { ...figures };
  closing = true;
  await bucket.close();
  await settled();
  return result;
}

function assertGoals(figures: Figures): void {
  const avoidable = figures.rejected - figures.unforeseeable;
  assert.ok(avoidable <= figures.sent / 1_000, `${avoidable} of ${figures.sent} rejected`);
  assert.ok(figures.accepted >= 0.9 * figures.budget, `${figures.accepted} of ${figures.budget}`);
}

function report(model: string, scenario: string, f: Figures): void {
  const used = ((100 * f.accepted) / f.budget).toFixed(1);
  console.log(
    `${model}, ${scenario}: offered ${f.offered}, sent ${f.sent}, rejected ${f.rejected} ` +
      `(${f.unforeseeable} unforeseeable), ${used}% of the budget used, ` +
      `longest money wait ${Math.round(f.longestMoneyWaitMs)} ms, money refused ${f.refusedMoney}`,
  );
}

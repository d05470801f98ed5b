import assert from "node:assert/strict";
import { GatewayError } from "../../src/errors.ts";
import type { Permit, Priority, TurnTaker } from "../../src/ratelimit/bucket.ts";
import type { TokenBucket } from "../../src/ratelimit/queued-bucket.ts";
import { seeded } from "../random.ts";
import { slidingWindowUpstream } from "./modelled-upstream.ts";
import type { VirtualClock } from "./virtual-clock.ts";

/** One caller's load. */
export interface CallerLoad {
  readonly caller: TurnTaker;
  readonly perSecond: number;
  readonly priority?: Priority;
  /** Calls keep a distance, so that none waits behind another one of the same caller. */
  readonly spaced?: true;
}

export interface TurnsLoad {
  readonly clock: VirtualClock;
  /** One bucket per replica. */
  readonly buckets: readonly TokenBucket[];
  readonly limit: number;
  readonly seconds: number;
  readonly callers: readonly CallerLoad[];
  /** False: the bucket takes all calls for those of one caller. */
  readonly turns: boolean;
}

export interface CallerFigures {
  readonly name: string;
  readonly offered: number;
  readonly granted: number;
  readonly refused: number;
  readonly p99WaitMs: number;
}

export interface TurnsFigures {
  readonly callers: readonly CallerFigures[];
  /** Jain's fairness index: see `jainOf`. */
  readonly jain: number;
  /** Share of the budget that was used. */
  readonly used: number;
  readonly sent: number;
  readonly rejected: number;
}

/** Sends the callers' calls to random replicas of one account, before a strict upstream. */
export async function runTurns(load: TurnsLoad): Promise<TurnsFigures> {
  const { clock, buckets, limit, seconds } = load;
  const random = seeded(1);
  const upstream = slidingWindowUpstream(limit);
  const { signal } = new AbortController();
  const pause = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve));
  const startedAt = clock.now();
  const now = () => clock.now() - startedAt;
  let [sent, rejected, ending, latestArrival] = [0, 0, false, 0];

  const figures = load.callers.map(({ caller, perSecond, priority = "read", spaced }, nth) => {
    // The times of a caller's calls do not depend on the other callers.
    const arrivals = seeded(nth + 2);
    const gap = () => (spaced ? 0.5 + arrivals() : -Math.log(1 - arrivals()));
    const counted = { offered: 0, granted: 0, refused: 0, waits: [] as number[] };
    const call = async () => {
      const bucket = buckets[Math.floor(random() * buckets.length)]!;
      const askedAt = now();
      // The bucket is full at first and grants everything: do not count that.
      const counts = askedAt >= warmUpMs;
      if (counts) counted.offered++;
      let permit: Permit;
      try {
        permit = await bucket.take({ priority, signal, ...(load.turns && { caller }) });
      } catch (error) {
        if (ending) return;
        assert.ok(error instanceof GatewayError && error.code === "RESOURCE_EXHAUSTED", `${error}`);
        if (counts) counted.refused++;
        return;
      }
      if (counts) counted.granted++;
      if (counts) counted.waits.push(now() - askedAt);
      const onTheWayMs = 5 + random() * 20;
      const arrivesAt = now() + onTheWayMs;
      await pause(onTheWayMs);
      latestArrival = Math.max(latestArrival, arrivesAt);
      const { accepted, headers } = upstream.request(latestArrival);
      if (arrivesAt >= warmUpMs) {
        sent++;
        if (!accepted) rejected++;
      }
      await pause(5 + random() * 20);
      if (accepted) permit.observe(headers);
      else permit.rejected(headers);
    };
    const offer = () => {
      if (ending) return;
      void call();
      clock.after((gap() * 1_000) / perSecond, offer);
    };
    offer();
    return { name: caller.name, counted };
  });
  await clock.run(warmUpMs + seconds * 1_000);
  const callers = figures.map(({ name, counted: { waits, ...counted } }) => {
    const sorted = waits.toSorted((a, b) => a - b);
    const p99WaitMs = sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
    return { name, ...counted, p99WaitMs };
  });
  ending = true;
  for (const bucket of buckets) bucket.close();
  return {
    callers,
    jain: jainOf(callers),
    used: sent / (seconds * limit),
    sent,
    rejected,
  };
}

const warmUpMs = 3_000;

/**
 * Jain's fairness index over each caller's granted calls as a part of those it could use: all that
 * it offered, or an even share.
 */
export function jainOf(callers: readonly { offered: number; granted: number }[]): number {
  let left = callers.reduce((sum, { granted }) => sum + granted, 0);
  const byDemand = callers.toSorted((a, b) => a.offered - b.offered);
  const parts = byDemand.map(({ offered, granted }, nth) => {
    const usable = Math.min(offered, left / (byDemand.length - nth));
    left -= usable;
    return granted / usable;
  });
  const sum = parts.reduce((all, part) => all + part, 0);
  return sum ** 2 / (parts.length * parts.reduce((all, part) => all + part ** 2, 0));
}

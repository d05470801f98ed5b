import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { GatewayError } from "../../src/errors.ts";
import type { EventLog } from "../../src/ledger/log.ts";
import { until } from "../until.ts";
import { payment } from "./entries.ts";

/** Callbacks that are sent at a steady rate, each repeated until it is acknowledged. */
export interface Callbacks {
  /** External ids of the acknowledged callbacks, with the time (`performance.now`). */
  readonly acknowledged: ReadonlyMap<string, number>;
  /** Number of appends that failed with UNAVAILABLE. */
  readonly refused: () => number;
  /** Stops sending new callbacks; resolves once all sent ones are acknowledged. */
  stop(): Promise<void>;
}

/** Sends callbacks to the replicas' logs in turn. */
export function sendCallbacks(logs: readonly EventLog[], perSecond: number): Callbacks {
  const acknowledged = new Map<string, number>();
  const sending = new Set<Promise<void>>();
  let sent = 0;
  let refused = 0;
  const send = async (i: number) => {
    const externalId = `order-${i}`;
    const entry = payment({ externalId, paymentId: externalId });
    for (let attempt = i; ; attempt++) {
      try {
        await logs[attempt % logs.length]?.append("shop", entry);
        break;
      } catch (error) {
        assert(error instanceof GatewayError && error.code === "UNAVAILABLE", String(error));
        refused++;
        await delay(50);
      }
    }
    acknowledged.set(externalId, performance.now());
  };
  const timer = setInterval(() => {
    const sends = send(sent++).finally(() => sending.delete(sends));
    sending.add(sends);
  }, 1_000 / perSecond);
  return {
    acknowledged,
    refused: () => refused,
    async stop() {
      clearInterval(timer);
      await Promise.all(sending);
    },
  };
}

/** A client that reads all events, resumes after its cursor, and starts over when it is refused. */
export interface Watcher {
  /** External ids, with the time (`performance.now`) of each one's first event. */
  readonly seen: ReadonlyMap<string, number>;
  /** Number of events whose cursor was not after that of the previous event. */
  readonly repeats: () => number;
  /** How often its cursor was refused, so that it started over from the oldest event. */
  readonly restarts: () => number;
  stop(): Promise<void>;
}

export function watch(log: EventLog): Watcher {
  const seen = new Map<string, number>();
  const ends = new AbortController();
  const { signal } = ends;
  let repeats = 0;
  let restarts = 0;
  const run = async () => {
    let cursor: string | undefined;
    while (!signal.aborted) {
      try {
        const events = await log.read("shop", { kinds: [] }, cursor ?? "earliest", { signal });
        for await (const event of events) {
          if (cursor !== undefined && event.cursor <= cursor) repeats++;
          cursor = event.cursor;
          if (!seen.has(event.externalId)) seen.set(event.externalId, performance.now());
        }
      } catch (error) {
        assert(error instanceof GatewayError, String(error));
        if (signal.aborted) return;
        if (error.code === "OUT_OF_RANGE") {
          restarts++;
          cursor = undefined;
        } else {
          assert.equal(error.code, "UNAVAILABLE");
          await delay(50);
        }
      }
    }
  };
  const running = run();
  return {
    seen,
    repeats: () => repeats,
    restarts: () => restarts,
    async stop() {
      ends.abort();
      await running;
    },
  };
}

/** Asserts that the log and every watcher have all acknowledged callbacks, without repeats. */
export async function assertKept(
  log: EventLog,
  { acknowledged }: Callbacks,
  watchers: readonly Watcher[],
): Promise<void> {
  const missing = (seen: ReadonlyMap<string, number>) =>
    [...acknowledged.keys()].filter((externalId) => !seen.has(externalId));
  const fresh = watch(log);
  for (const watcher of [fresh, ...watchers]) {
    const patience = AbortSignal.timeout(10_000);
    await until(async () => patience.aborted || missing(watcher.seen).length === 0);
    assert.deepEqual(missing(watcher.seen), [], "acknowledged, but not seen");
    assert.equal(watcher.repeats(), 0);
    await watcher.stop();
  }
}

/** The longest time between two acknowledgements, in milliseconds. */
export function maxPause({ acknowledged }: Callbacks): number {
  const times = [...acknowledged.values()].toSorted((one, other) => one - other);
  return Math.max(...times.map((time, at) => time - (times[at - 1] ?? time)));
}

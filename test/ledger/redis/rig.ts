import { randomUUID } from "node:crypto";
import { after } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Event } from "../../../src/gen/payments/v1/event_pb.ts";
import type { Ledger } from "../../../src/ledger/ledger.ts";
import type { RedisConnector } from "../../../src/redis/connect.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { type EventLogHarness, lettersBound } from "../../contracts/event-log.ts";
import { connected } from "../../redis/suite.ts";
import {
  createRedisLedger as createRedisLog,
  type RedisLedgerOptions as RedisLogOptions,
} from "../create.ts";

const day = 86_400_000;
const keyring = await deriveKeyring("shop", [new Secret("password")]);

/** A log with its own connections, as a separate process has it. */
export interface Replica {
  readonly log: Ledger;
  readonly redis: RedisConnector;
  close(): Promise<void>;
}

/** Opens a log and waits until Redis answers. */
export async function replica(
  url: string,
  options: Partial<RedisLogOptions> = {},
): Promise<Replica> {
  const redis = await connected(url);
  const log = createRedisLog({
    redis,
    prefix: "test",
    retentionMs: 7 * day,
    keyringOf: () => keyring,
    ...options,
  });
  const opened: Replica = {
    log,
    redis,
    async close() {
      open.delete(opened);
      await log.close();
      await redis.close();
    },
  };
  open.add(opened);
  return opened;
}

const open = new Set<Replica>();

after(() => Promise.all([...open].map((one) => one.close())));

/** Two replicas with the same new key prefix, for the contract suites. */
export async function redisHarness(url: string): Promise<EventLogHarness> {
  const prefix = randomUUID();
  const options = { prefix, lettersBound };
  const [one, other] = await Promise.all([replica(url, options), replica(url, options)]);
  return {
    log: one.log,
    peer: other.log,
    async expire(account) {
      await one.redis.client.xtrim(accountKeys(prefix, account).events, "MAXLEN", 0);
    },
    async stop() {
      await one.close();
      await other.close();
    },
  };
}

/** A reader of all events of the account `shop`. */
export interface Reader {
  readonly seen: Event[];
  /** Resolves when the read has ended: to its error, or to undefined without one. */
  readonly ended: Promise<unknown>;
  /** Waits until `count` events were seen; rejects after 30 s, or if the read ends before. */
  sees(count: number): Promise<void>;
  stop(): Promise<void>;
}

/** Reads all events of the account `shop` in the background. */
export async function reader(log: Ledger, after = "latest"): Promise<Reader> {
  const ends = new AbortController();
  const events = await log.read("shop", { kinds: [] }, after, { signal: ends.signal });
  const seen: Event[] = [];
  let over = false;
  const ended = (async () => {
    try {
      for await (const event of events) seen.push(event);
      return undefined;
    } catch (error) {
      return error;
    } finally {
      over = true;
    }
  })();
  return {
    seen,
    ended,
    async sees(count) {
      const deadline = AbortSignal.timeout(30_000);
      while (seen.length < count) {
        if (over) throw new Error(`the read ended after ${seen.length} of ${count}`);
        if (deadline.aborted) throw new Error(`saw ${seen.length} of ${count} in 30 s`);
        await delay(2);
      }
    },
    async stop() {
      ends.abort();
      await ended;
    },
  };
}

import type { ChainableCommander } from "ioredis";
import {
  acknowledgedBy,
  type Candidates,
  candidatesOf,
  hasLongBeenOutOfSync,
  isOutranked,
  readNodes,
  readRole,
} from "./acknowledged.ts";
import type { RedisConnector } from "./connect.ts";
import { isCluster, type ServerAddress } from "./link.ts";
import type { SentinelView } from "./sentinels.ts";

/** Finds out whether enough servers hold what a connection wrote. */
export type WriteConcern = Pick<AllReplicas, "queue" | "assertHeld">;

export type PipelineAnswers = readonly (readonly [error: Error | null, answer: unknown])[];

export interface Question {
  /** The server that was asked, by the Sentinels' address for it. */
  readonly primary: ServerAddress | undefined;
  /** Asks once more on the same connection; replicas have `ms` to acknowledge. */
  again(ms: number): Promise<PipelineAnswers>;
}

/**
 * Requires that `min` replicas hold the writes, whichever they are: a failover to another replica
 * loses the writes.
 */
export const someReplicas = (min: number): WriteConcern => ({
  queue: (pipeline, ms) => void pipeline.wait(min, ms),
  async assertHeld([answer]) {
    const [error, replicas] = answer ?? [new Error("no answer")];
    if (error) throw error;
    if (Number(replicas) < min) throw new Error(`${replicas} of ${min} replicas acknowledged`);
  },
});

/** How long a replica that was in sync is remembered: longer than Sentinels take to discover one. */
const recentMs = 30_000;
/** How long a Sentinel view, or a replica's answer, may be used again. */
const viewMs = 1_000;

/** How long the second WAIT gives replicas in sync to catch up, in milliseconds. */
const againMs = 500;

/**
 * Requires that every replica that could be promoted holds a write: see
 * docs/decisions/0001-all-replicas.md.
 */
export class AllReplicas {
  readonly #redis: RedisConnector;
  /** When each replica was last in sync. */
  readonly #inSyncMs = new Map<ServerAddress, number>();
  /** What the Sentinels last told of the replicas of `of`. */
  #last:
    | {
        readonly views: readonly SentinelView[];
        readonly atMs: number;
        readonly of: ServerAddress | undefined;
      }
    | undefined;
  /** How many replicas the next WAIT waits for: those in sync that must hold a write. */
  #waitFor = 1;
  /** Recent answers to whether a replica has long been out of sync. */
  readonly #behind = new Map<
    ServerAddress,
    { readonly isBehind: Promise<boolean>; readonly atMs: number }
  >();

  constructor(redis: RedisConnector) {
    this.#redis = redis;
  }

  /** Adds the commands that find this out, after the writes; replicas have `ms` to acknowledge. */
  queue(pipeline: ChainableCommander, ms: number): void {
    pipeline.role();
    pipeline.wait(this.#waitFor, ms);
    pipeline.role();
    if (isCluster(this.#redis.client)) pipeline.call("CLUSTER", "NODES");
  }

  /** @throws Error that says why the writes do not count as written, by the answers */
  async assertHeld(answers: PipelineAnswers, { primary, again }: Question): Promise<void> {
    const reading = readingOf(answers, primary);
    const { written, following, node } = reading;
    try {
      return await this.#assertHeld(reading);
    } catch (error) {
      // A replica in sync lags: it joined just now, or WAIT did not wait for it. Ask once more.
      if (![...following.replicas.values()].some((offset) => offset < written)) throw error;
    }
    this.#waitFor = following.replicas.size;
    const next = readingOf(await again(againMs), primary);
    // The driver asks the node that serves the slot now: one that was promoted may lack the write.
    if (next.node?.id !== node?.id) throw new Error("another node answers now");
    await this.#assertHeld({ ...next, written });
  }

  async #assertHeld(reading: Reading): Promise<void> {
    const { following, node, primary } = reading;
    const nowMs = performance.now();
    for (const address of following.replicas.keys()) this.#inSyncMs.set(address, nowMs);
    // It was a replica itself before a failover.
    if (primary !== undefined) this.#inSyncMs.delete(primary);
    for (const [address, atMs] of this.#inSyncMs) {
      if (nowMs - atMs > recentMs) this.#inSyncMs.delete(address);
    }
    const { sentinels } = this.#redis;
    const last = this.#last;
    if (last && last.of === primary && nowMs - last.atMs <= viewMs) {
      const candidates = candidatesOf(last.views, primary, { areFresh: false });
      if (this.#compare(reading, candidates).lacking.length === 0) return;
    }
    const views = (await sentinels?.views()) ?? [];
    // Without Sentinels the primary's own answers tell all that is known.
    const candidates = sentinels ? candidatesOf(views, primary) : (node?.replicas ?? new Map());
    if (sentinels) this.#last = { views, atMs: nowMs, of: primary };
    const lacking = await this.#notLeftBehind(this.#compare(reading, candidates), views);
    if (lacking.length === 0) return;
    throw new Error(`replicas that could be promoted do not hold it: ${lacking.join(", ")}`);
  }

  #compare({ written, following }: Reading, candidates: Candidates) {
    // Only Sentinels promote a replica that the answers no longer list: without Sentinels nobody
    // does, and CLUSTER NODES lists all replicas.
    const recent = this.#redis.sentinels ? this.#inSyncMs.keys() : [];
    const inSync = [...following.replicas.keys()];
    this.#waitFor = inSync.filter((address) => !candidates.get(address)?.spared).length;
    return acknowledgedBy(written, following, candidates, recent);
  }

  /**
   * Removes replicas that are not promoted while another one holds the write, since Sentinels and
   * cluster nodes prefer the one with the most data. Either all Sentinels rank it behind a holder,
   * or it reports itself that it has been out of sync for longer than they take to discover that.
   */
  async #notLeftBehind(
    { holders, lacking }: ReturnType<typeof acknowledgedBy>,
    views: readonly SentinelView[],
  ): Promise<readonly ServerAddress[]> {
    if (holders.length === 0) return lacking;
    const left = lacking.filter((address) => !isOutranked(address, holders, views));
    const behind = await Promise.all(left.map((address) => this.#isLeftBehind(address)));
    return left.filter((_, at) => behind[at] !== true);
  }

  #isLeftBehind(address: ServerAddress): Promise<boolean> {
    const asked = this.#behind.get(address);
    if (asked && performance.now() - asked.atMs < viewMs) return asked.isBehind;
    const isBehind = this.#redis.info(address).then(hasLongBeenOutOfSync, () => false);
    this.#behind.set(address, { isBehind, atMs: performance.now() });
    return isBehind;
  }
}

type Reading = ReturnType<typeof readingOf>;

/** @throws Error if a command failed, or the server is no primary */
function readingOf(answers: PipelineAnswers, primary: ServerAddress | undefined) {
  const [before, , after, nodes] = answers.map(([error, answer]) => {
    if (error) throw error;
    return answer;
  });
  const written = readRole(before).offset;
  // Only in a cluster.
  const node = nodes === undefined ? undefined : readNodes(String(nodes));
  return { written, following: readRole(after), node, primary };
}

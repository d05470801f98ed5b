import type { ChainableCommander } from "ioredis";
import {
  type Acknowledged,
  acknowledgedBy,
  type Candidates,
  candidatesOf,
  type Following,
  hasLongBeenOutOfSync,
  isOutranked,
  readNodes,
  readRole,
} from "./acknowledged.ts";
import type { RedisConnector } from "./connect.ts";
import { within } from "./deadline.ts";
import { isCluster } from "./link.ts";
import type { SentinelView, ServerAddress } from "./sentinels.ts";

/** Finds out whether enough servers hold what a connection wrote. */
export interface WriteConcern {
  /** Adds the commands that find this out, after the writes; replicas have `ms` to acknowledge. */
  queue(pipeline: ChainableCommander, ms: number): void;
  /** Returns why the writes do not count as written, by the answers; undefined if they do. */
  missing(answers: PipelineAnswers, asked: Question): Promise<Error | undefined>;
}

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
export class SomeReplicas implements WriteConcern {
  readonly #min: number;

  constructor(min: number) {
    this.#min = min;
  }

  queue(pipeline: ChainableCommander, ms: number): void {
    pipeline.wait(this.#min, ms);
  }

  async missing([answer]: PipelineAnswers): Promise<Error | undefined> {
    const [error, replicas] = answer ?? [new Error("no answer")];
    if (error) return error;
    if (Number(replicas) >= this.#min) return undefined;
    return new Error(`${replicas} of ${this.#min} replicas acknowledged`);
  }
}

/** How long a replica that was in sync is remembered: longer than Sentinels take to discover one. */
const recentMs = 30_000;
/** How long a Sentinel view, or a replica's answer, may be used again. */
const viewMs = 1_000;
const infoMs = 500;

/** How long the second WAIT gives replicas in sync to catch up, in milliseconds. */
const againMs = 500;

interface Reading {
  readonly written: number;
  readonly following: Following;
  /** The answer of CLUSTER NODES; only in a cluster. */
  readonly nodes: string | undefined;
  readonly primary: ServerAddress | undefined;
}

/**
 * Requires that every replica that could be promoted holds a write: see
 * docs/decisions/0001-all-replicas.md.
 */
export class AllReplicas implements WriteConcern {
  readonly #redis: RedisConnector;
  /** When each replica was last in sync. */
  readonly #inSyncMs = new Map<ServerAddress, number>();
  /** The candidates as the Sentinels last told them, about the replicas of `of`. */
  #view:
    | { readonly candidates: Candidates; readonly atMs: number; readonly of: string }
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

  queue(pipeline: ChainableCommander, ms: number): void {
    pipeline.role();
    pipeline.wait(this.#waitFor, ms);
    pipeline.role();
    if (isCluster(this.#redis.client)) pipeline.call("CLUSTER", "NODES");
  }

  async missing(
    answers: PipelineAnswers,
    { primary, again }: Question,
  ): Promise<Error | undefined> {
    const reading = readingOf(answers, primary);
    if (reading instanceof Error) return reading;
    const reason = await this.#reasonNotTo(reading);
    if (reason === undefined) return undefined;
    const { written, following } = reading;
    // A replica in sync lags: it joined just now, or WAIT did not wait for it. Ask once more.
    const isLate = [...following.replicas.values()].some((offset) => offset < written);
    if (!isLate) return new Error(reason);
    this.#waitFor = following.replicas.size;
    const next = readingOf(await again(againMs), primary);
    if (next instanceof Error) return next;
    // The driver asks the node that serves the slot now: one that was promoted may lack the write.
    if (ownNode(next) !== ownNode(reading)) return new Error("another node answers now");
    const stillNot = await this.#reasonNotTo({ ...next, written });
    return stillNot === undefined ? undefined : new Error(stillNot);
  }

  async #reasonNotTo(reading: Reading): Promise<string | undefined> {
    const now = performance.now();
    for (const address of reading.following.replicas.keys()) this.#inSyncMs.set(address, now);
    // It was a replica itself before a failover.
    if (reading.primary !== undefined) this.#inSyncMs.delete(reading.primary);
    for (const [address, atMs] of this.#inSyncMs) {
      if (now - atMs > recentMs) this.#inSyncMs.delete(address);
    }
    const recent = this.#recentView(reading.primary);
    if (recent && this.#compare(reading, recent).lacking.length === 0) return undefined;
    const fresh = await this.#look(reading);
    if (typeof fresh === "string") return fresh;
    const found = this.#compare(reading, fresh.candidates);
    const lacking = await this.#notLeftBehind(found, fresh.views);
    if (lacking.length === 0) return undefined;
    return `replicas that could be promoted do not hold it: ${lacking.join(", ")}`;
  }

  #compare({ written, following }: Reading, candidates: Candidates): Acknowledged {
    // Only Sentinels promote a replica that the answers no longer list: without Sentinels nobody
    // does, and CLUSTER NODES lists all replicas.
    const recent = this.#redis.sentinels ? this.#inSyncMs.keys() : [];
    const found = acknowledgedBy(written, following, candidates, recent);
    const inSync = [...following.replicas.keys()];
    this.#waitFor = inSync.filter((address) => !found.spared.includes(address)).length;
    return found;
  }

  /** The candidates by the Sentinels' last views, if these are recent enough. */
  #recentView(primary: ServerAddress | undefined): Candidates | undefined {
    const view = this.#view;
    if (!view || view.of !== primary || performance.now() - view.atMs > viewMs) return undefined;
    // A replica that was down then may be up again: a reused view excuses none as down.
    return new Map(
      [...view.candidates].map(([address, { eligible }]) => [address, { down: false, eligible }]),
    );
  }

  /**
   * The candidates as seen after the write, with the Sentinels' views; a string says why nothing
   * counts. Without Sentinels the primary's own answers tell all that is known.
   */
  async #look({ nodes, primary }: Reading): Promise<Look | string> {
    const { sentinels } = this.#redis;
    if (!sentinels) {
      const candidates = nodes === undefined ? new Map() : readNodes(nodes);
      return candidates ? { candidates, views: [] } : "the server is no primary any more";
    }
    const atMs = performance.now();
    const views = await sentinels.views();
    const candidates = candidatesOf(views, sentinels.size, primary);
    if (typeof candidates === "string") return candidates;
    this.#view = { candidates, atMs, of: primary ?? "" };
    return { candidates, views };
  }

  /**
   * Removes replicas that are not promoted while another one holds the write, since Sentinels and
   * cluster nodes prefer the one with the most data. Either all Sentinels rank it behind a holder,
   * or it reports itself that it has been out of sync for longer than they take to discover that.
   */
  async #notLeftBehind(
    { holders, lacking }: Acknowledged,
    views: Look["views"],
  ): Promise<readonly ServerAddress[]> {
    if (holders.length === 0) return lacking;
    const { sentinels } = this.#redis;
    const left = lacking.filter(
      (address) => !sentinels || !isOutranked(address, holders, views, sentinels.size),
    );
    const behind = await Promise.all(left.map((address) => this.#isLeftBehind(address)));
    return left.filter((_, at) => behind[at] !== true);
  }

  #isLeftBehind(address: ServerAddress): Promise<boolean> {
    const asked = this.#behind.get(address);
    if (asked && performance.now() - asked.atMs < viewMs) return asked.isBehind;
    const isBehind = this.#info(address).then(hasLongBeenOutOfSync, () => false);
    this.#behind.set(address, { isBehind, atMs: performance.now() });
    return isBehind;
  }

  async #info(address: ServerAddress): Promise<string> {
    const server = this.#redis.server(address);
    try {
      await within(infoMs, server.connect());
      return await within(infoMs, server.info());
    } finally {
      server.disconnect();
    }
  }
}

interface Look {
  readonly candidates: Candidates;
  readonly views: readonly SentinelView[];
}

/** The id of the node of a cluster that answered. */
function ownNode({ nodes = "" }: Reading): string | undefined {
  return /^(\S+) \S+ \S*\bmyself\b/m.exec(nodes)?.[1];
}

function readingOf(answers: PipelineAnswers, primary: ServerAddress | undefined): Reading | Error {
  const failed = answers.find(([error]) => error !== null);
  if (failed?.[0]) return failed[0];
  const [before, , after, nodes] = answers.map(([, answer]) => answer);
  const [written, following] = [readRole(before), readRole(after)];
  if (!written || !following) return new Error("the server is no primary any more");
  return {
    written: written.offset,
    following,
    nodes: nodes === undefined ? undefined : String(nodes),
    primary,
  };
}

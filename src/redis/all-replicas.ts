import type { ChainableCommander } from "ioredis";
import type { RedisConnector } from "./connect.ts";
import { within } from "./deadline.ts";
import {
  type Candidates,
  candidatesOf,
  type Following,
  heldBy,
  isOutranked,
  readNodes,
  readRole,
} from "./held-by-all.ts";
import type { Holders, PipelineAnswers, Question } from "./holders.ts";
import { isCluster } from "./link.ts";
import type { SentinelView, ServerAddress } from "./sentinels.ts";

/**
 * How long a replica that was in sync is remembered: longer than Sentinels take to discover one.
 */
const recentMs = 30_000;
/** How long a Sentinel view, or a replica's answer, may be used again. */
const viewMs = 1_000;
/**
 * A replica that was out of sync for longer ranks last: Sentinels and cluster nodes know its offset
 * by then.
 */
const outOfSyncMs = 20_000;
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
export class AllReplicas implements Holders {
  readonly #redis: RedisConnector;
  /** When each replica was last in sync. */
  readonly #inSyncMs = new Map<ServerAddress, number>();
  #view:
    | { readonly candidates: Candidates; readonly atMs: number; readonly of: string }
    | undefined;
  #views: readonly SentinelView[] = [];
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
    let reading = readingOf(answers, primary);
    if (reading instanceof Error) return reading;
    const { written } = reading;
    for (let asked = 0; asked < 2; asked++) {
      const reason = await this.#reasonNotTo(reading);
      if (reason === undefined) return undefined;
      // A replica in sync lags: it joined just now, or WAIT did not wait for it. Ask once more.
      const late = [...reading.following.replicas.values()].filter((offset) => offset < written);
      if (late.length === 0 || asked > 0) return new Error(reason);
      this.#waitFor = reading.following.replicas.size;
      const next = readingOf(await again(againMs), primary);
      if (next instanceof Error) return next;
      reading = { ...next, written };
    }
    return undefined;
  }

  async #reasonNotTo(reading: Reading): Promise<string | undefined> {
    const now = performance.now();
    for (const address of reading.following.replicas.keys()) this.#inSyncMs.set(address, now);
    for (const [address, atMs] of this.#inSyncMs) {
      if (now - atMs > recentMs) this.#inSyncMs.delete(address);
    }
    const known = this.#known(reading);
    if (known && this.#lacking(reading, known).length === 0) return undefined;
    const fresh = await this.#ask(reading);
    if (typeof fresh === "string") return fresh;
    const lacking = await this.#notLeftBehind(reading, this.#lacking(reading, fresh));
    if (lacking.length === 0) return undefined;
    return `replicas that could be promoted do not hold it: ${lacking.join(", ")}`;
  }

  #lacking(reading: Reading, candidates: Candidates): readonly ServerAddress[] {
    const { written, following } = reading;
    // Only Sentinels promote a replica that the answers no longer list: without Sentinels nobody
    // does, and CLUSTER NODES lists all replicas.
    const recent = this.#redis.sentinels ? this.#inSyncMs.keys() : [];
    const { lacking, spared } = heldBy(written, following, candidates, recent);
    const inSync = [...following.replicas.keys()];
    this.#waitFor = inSync.filter((address) => !spared.includes(address)).length;
    return lacking;
  }

  /**
   * The candidates as far as known without asking: from the primary's own answers, or from Sentinel
   * views that are recent enough.
   */
  #known({ nodes, primary }: Reading): Candidates | undefined {
    if (nodes !== undefined) return readNodes(nodes);
    if (!this.#redis.sentinels) return { replicas: new Map() };
    const view = this.#view;
    if (!view || view.of !== primary || performance.now() - view.atMs > viewMs) return undefined;
    // A replica that was down then may be up again: a reused view excuses none as down.
    const replicas = [...view.candidates.replicas].map(
      ([address, { eligible }]) => [address, { down: false, eligible }] as const,
    );
    return { replicas: new Map(replicas) };
  }

  /**
   * The candidates as seen after the write, from the Sentinels; a string says why nothing counts.
   */
  async #ask({ nodes, primary }: Reading): Promise<Candidates | string> {
    this.#views = [];
    if (nodes !== undefined) return readNodes(nodes) ?? "the server is no primary any more";
    const { sentinels } = this.#redis;
    if (!sentinels) return { replicas: new Map() };
    const atMs = performance.now();
    this.#views = await sentinels.views();
    const candidates = candidatesOf(this.#views, sentinels.size, primary);
    if (typeof candidates !== "string") this.#view = { candidates, atMs, of: primary ?? "" };
    return candidates;
  }

  /**
   * Removes replicas that are not promoted while another one holds the write, since Sentinels and
   * cluster nodes prefer the one with the most data. Either all Sentinels rank it behind a holder,
   * or it reports itself that it has been out of sync for longer than they take to discover that.
   */
  async #notLeftBehind(
    { following, written }: Reading,
    lacking: readonly ServerAddress[],
  ): Promise<readonly ServerAddress[]> {
    const holders = [...following.replicas]
      .filter(([, offset]) => offset >= written)
      .map(([address]) => address);
    if (holders.length === 0) return lacking;
    const size = this.#redis.sentinels?.size ?? 0;
    const left = lacking.filter(
      (address) => size === 0 || !isOutranked(address, holders, this.#views, size),
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

/**
 * Whether a replica's INFO shows that its link has been down for more than 20 s, or that the
 * replica has been up for so long without ever having a link.
 */
export function hasLongBeenOutOfSync(info: string): boolean {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
  if (field("role") !== "slave" || field("master_link_status") !== "down") return false;
  const downSeconds = Number(field("master_link_down_since_seconds") ?? -1);
  const seconds = downSeconds >= 0 ? downSeconds : Number(field("uptime_in_seconds") ?? 0);
  return seconds * 1_000 > outOfSyncMs;
}

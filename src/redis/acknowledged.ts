import type { SentinelView, ServerAddress } from "./sentinels.ts";

/** A primary's answer to ROLE about its replicas. */
export interface Following {
  /** The primary's replication offset. */
  readonly offset: number;
  /** The offset that each replica in sync has acknowledged. */
  readonly replicas: ReadonlyMap<ServerAddress, number>;
}

/** Every known replica of a primary, as seen by those that decide which one is promoted. */
export type Candidates = ReadonlyMap<ServerAddress, Candidate>;

export interface Candidate {
  /** It is known to be down, so it is not promoted. */
  readonly down: boolean;
  /** Whether it may be promoted at all. */
  readonly eligible: boolean;
}

/** Reads the answer of ROLE; undefined if the server is not a primary. */
export function readRole(answer: unknown): Following | undefined {
  if (!Array.isArray(answer) || answer[0] !== "master") return undefined;
  const replicas = (answer[2] as [host: string, port: string, offset: string][]).map(
    ([host, port, offset]): [ServerAddress, number] => [`${host}:${port}`, Number(offset)],
  );
  return { offset: Number(answer[1]), replicas: new Map(replicas) };
}

/**
 * Combines the Sentinels' views of the set of one primary. A replica counts as down only if most of
 * all Sentinels answered and all of them that know it say so: any of the others may lead the next
 * failover.
 * @param size how many Sentinels the configuration names
 * @returns the candidates, or why no write may be acknowledged: too few Sentinels answer, or
 * another primary was promoted
 */
export function candidatesOf(
  views: readonly SentinelView[],
  size: number,
  primary: ServerAddress | undefined,
): Candidates | string {
  const all = Math.max(size, ...views.map(({ sentinels }) => sentinels));
  if (views.length <= all / 2) return `${views.length} of ${all} Sentinels answer`;
  const isNewest = ({ epoch }: SentinelView) => !views.some((view) => view.epoch > epoch);
  // A failover may end between a Sentinel's two answers: its primary is then newer than its epoch.
  const other = views.find((view) => isNewest(view) && view.primary !== primary)?.primary;
  if (other !== undefined) {
    return `the Sentinels name ${other} as primary, not ${primary ?? "this server"}`;
  }
  const replicas = new Map<ServerAddress, Candidate>();
  for (const { address, down, priority } of views.flatMap((view) => view.replicas)) {
    if (address === primary) continue;
    const known = replicas.get(address);
    replicas.set(address, {
      down: down && (known?.down ?? true),
      eligible: priority !== 0 || (known?.eligible ?? false),
    });
  }
  return replicas;
}

/**
 * Whether every Sentinel would promote a replica that holds the write before this one. False unless
 * all Sentinels answered and none is in a failover: that one may have chosen already.
 */
export function isOutranked(
  address: ServerAddress,
  holders: readonly ServerAddress[],
  views: readonly SentinelView[],
  size: number,
): boolean {
  const all = Math.max(size, ...views.map(({ sentinels }) => sentinels));
  if (views.length < all || views.some(({ failingOver }) => failingOver)) return false;
  return views.every(({ replicas }) => {
    const it = replicas.find((replica) => replica.address === address);
    return (
      !it ||
      replicas.some(
        (other) =>
          holders.includes(other.address) &&
          !other.down &&
          other.priority !== 0 &&
          (other.priority < it.priority ||
            (other.priority === it.priority && other.offset > it.offset)),
      )
    );
  });
}

/**
 * Reads the answer of a cluster's primary to CLUSTER NODES: its replicas. A replica is down if most
 * primaries have agreed that it is (`fail`), not if this one alone cannot reach it (`fail?`).
 * @returns undefined if the node is not a primary
 */
export function readNodes(text: string): Candidates | undefined {
  const lines = text.split("\n").filter((line) => line !== "");
  const nodes = lines.map((line) => {
    const [id, address = "", flags = "", primary] = line.split(" ");
    return { id, address: address.split("@")[0] ?? "", flags: flags.split(","), primary };
  });
  const myself = nodes.find(({ flags }) => flags.includes("myself"));
  if (!myself?.flags.includes("master")) return undefined;
  const own = nodes.filter(({ primary }) => primary === myself.id);
  return new Map(
    own.map(({ address, flags }) => [
      address,
      { down: flags.includes("fail"), eligible: !flags.includes("nofailover") },
    ]),
  );
}

/** A field of Redis's answer to INFO. */
export function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
}

/**
 * A replica that was out of sync for longer ranks last: Sentinels and cluster nodes know its offset
 * by then.
 */
const outOfSyncMs = 20_000;

/**
 * Whether a replica's INFO shows that its link has been down for more than 20 s, or that the
 * replica has been up for so long without ever having a link.
 */
export function hasLongBeenOutOfSync(info: string): boolean {
  const field = (name: string) => infoField(info, name);
  if (field("role") !== "slave" || field("master_link_status") !== "down") return false;
  const downSeconds = Number(field("master_link_down_since_seconds") ?? -1);
  const seconds = downSeconds >= 0 ? downSeconds : Number(field("uptime_in_seconds") ?? 0);
  return seconds * 1_000 > outOfSyncMs;
}

/** Which replicas hold a write, and which must. */
export interface Acknowledged {
  readonly holders: readonly ServerAddress[];
  /** Replicas that must hold it and have not acknowledged it. */
  readonly lacking: readonly ServerAddress[];
  /** Replicas that need not hold it: down, or never promoted. */
  readonly spared: readonly ServerAddress[];
}

/**
 * Compares the replicas that hold a write with those that could be promoted: each one that is known
 * or in sync, except those that are down or never promoted.
 * @param written the primary's offset after the write
 * @param recent replicas that were in sync a short time ago: the Sentinels may not know them yet
 */
export function acknowledgedBy(
  written: number,
  { replicas }: Following,
  candidates: Candidates,
  recent: Iterable<ServerAddress> = [],
): Acknowledged {
  const holders = [...replicas]
    .filter(([, offset]) => offset >= written)
    .map(([address]) => address);
  const all = new Set([...replicas.keys(), ...candidates.keys(), ...recent]);
  const spared = [...all].filter((address) => {
    const known = candidates.get(address);
    return known !== undefined && (known.down || !known.eligible);
  });
  const lacking = [...all].filter(
    (address) => !holders.includes(address) && !spared.includes(address),
  );
  return { holders, lacking, spared };
}

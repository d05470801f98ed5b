import type { SentinelView, ServerAddress } from "./sentinels.ts";

/** What a primary says of those that follow it: ROLE. */
export interface Following {
  /** How much it has written. */
  readonly offset: number;
  /** How much of it each replica in sync has acknowledged. */
  readonly replicas: ReadonlyMap<ServerAddress, number>;
}

/** The rest of the set, as those see it that decide who is promoted. */
export interface Candidates {
  /** Every replica that is known. */
  readonly replicas: ReadonlyMap<ServerAddress, Candidate>;
}

export interface Candidate {
  /** It is known to be down: nobody promotes it. */
  readonly down: boolean;
  /** It may be promoted at all. */
  readonly eligible: boolean;
}

/** Reads the answer of ROLE; undefined of a server that is no primary. */
export function readRole(answer: unknown): Following | undefined {
  if (!Array.isArray(answer) || answer[0] !== "master") return undefined;
  const replicas = (answer[2] as [host: string, port: string, offset: string][]).map(
    ([host, port, offset]): [ServerAddress, number] => [`${host}:${port}`, Number(offset)],
  );
  return { offset: Number(answer[1]), replicas: new Map(replicas) };
}

/**
 * What the Sentinels say together, for a primary. A replica counts as down only when all of them that
 * know it say so, and most of all Sentinels answered: any of the others may lead the next failover.
 * @param size how many Sentinels there are, as far as the configuration says
 * @returns why nothing may be acknowledged: too few answer, or another primary was promoted
 */
export function candidatesOf(
  views: readonly SentinelView[],
  size: number,
  primary: ServerAddress | undefined,
): Candidates | string {
  const all = Math.max(size, ...views.map(({ sentinels }) => sentinels));
  if (views.length <= all / 2) return `${views.length} of ${all} Sentinels answer`;
  const newest = views.reduce((a, b) => (b.epoch > a.epoch ? b : a));
  if (newest.primary !== primary) {
    return `the Sentinels name ${newest.primary} as primary, not ${primary ?? "this server"}`;
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
  return { replicas };
}

/**
 * Whether every Sentinel would promote another replica than this one, and that one holds the write.
 * Only if all Sentinels say so and none is amid a failover: that one may have chosen already.
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
 * What a cluster's primary says of its replicas: CLUSTER NODES. A replica is down when most primaries
 * have agreed that it is (`fail`), not when this one alone cannot reach it (`fail?`).
 * @returns undefined of a node that is no primary
 */
export function readNodes(text: string): Candidates | undefined {
  const nodes = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [id = "", address = "", flags = "", primary = ""] = line.split(" ");
      return { id, address: address.split("@")[0] ?? "", flags: flags.split(","), primary };
    });
  const myself = nodes.find(({ flags }) => flags.includes("myself"));
  if (!myself?.flags.includes("master")) return undefined;
  const own = nodes.filter(({ primary }) => primary === myself.id);
  return {
    replicas: new Map(
      own.map(({ address, flags }) => [
        address,
        { down: flags.includes("fail"), eligible: !flags.includes("nofailover") },
      ]),
    ),
  };
}

/** Who has to hold a write, and who of them does. */
export interface Held {
  readonly holders: readonly ServerAddress[];
  /** Those that have to and do not, as far as they acknowledged. */
  readonly lacking: readonly ServerAddress[];
  /** Those in sync that need not. */
  readonly spared: readonly ServerAddress[];
}

/**
 * Compares those that hold a write with those that could be promoted: each replica that is known or
 * in sync, but for those that are down or never promoted.
 * @param written the primary's offset behind the write
 * @param recent replicas that were in sync a short time ago: the Sentinels may not know them yet
 */
export function heldBy(
  written: number,
  { replicas }: Following,
  candidates: Candidates,
  recent: Iterable<ServerAddress> = [],
): Held {
  const holders = [...replicas]
    .filter(([, offset]) => offset >= written)
    .map(([address]) => address);
  const all = new Set([...replicas.keys(), ...candidates.replicas.keys(), ...recent]);
  const spared = [...all].filter((address) => {
    const known = candidates.replicas.get(address);
    return known !== undefined && (known.down || !known.eligible);
  });
  const lacking = [...all].filter(
    (address) => !holders.includes(address) && !spared.includes(address),
  );
  return { holders, lacking, spared };
}

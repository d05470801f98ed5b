import type { ServerAddress } from "./link.ts";
import type { SentinelView } from "./sentinels.ts";

/**
 * Every known replica of a primary, as seen by those that decide which one is promoted: whether it
 * need not hold a write, because it is down or never promoted.
 */
export type Candidates = ReadonlyMap<ServerAddress, { readonly spared: boolean }>;

/** A primary's answer to ROLE about its replicas. */
export type Following = ReturnType<typeof readRole>;

/**
 * Reads the answer of ROLE: the primary's replication offset, and the one that each replica in sync
 * has acknowledged.
 * @throws Error if the server is not a primary
 */
export function readRole(answer: unknown) {
  if (!Array.isArray(answer) || answer[0] !== "master") throw noPrimary();
  const replicas = (answer[2] as [host: string, port: string, offset: string][]).map(
    ([host, port, offset]): [ServerAddress, number] => [`${host}:${port}`, Number(offset)],
  );
  return { offset: Number(answer[1]), replicas: new Map(replicas) as ReadonlyMap<string, number> };
}

const noPrimary = () => new Error("the server is no primary any more");

const sentinelCount = (views: readonly SentinelView[]) =>
  Math.max(1, ...views.map(({ sentinels }) => sentinels));

/**
 * Combines the Sentinels' views of the set of one primary. A replica counts as down only if most of
 * all Sentinels answered and all of them that know it say so: any of the others may lead the next
 * failover.
 * @param areFresh false for views from before the write: who was down then may be up again
 * @throws Error that says why no write may be acknowledged: too few Sentinels answer, or another
 * primary was promoted
 */
export function candidatesOf(
  views: readonly SentinelView[],
  primary: ServerAddress | undefined,
  { areFresh = true } = {},
): Candidates {
  const all = sentinelCount(views);
  if (views.length <= all / 2) throw new Error(`${views.length} of ${all} Sentinels answer`);
  const isNewest = ({ epoch }: SentinelView) => !views.some((view) => view.epoch > epoch);
  // A failover may end between a Sentinel's two answers: its primary is then newer than its epoch.
  const other = views.find((view) => isNewest(view) && view.primary !== primary)?.primary;
  if (other !== undefined) {
    throw new Error(`the Sentinels name ${other} as primary, not ${primary ?? "this server"}`);
  }
  const replicas = views.flatMap((view) => view.replicas);
  const candidates = new Map<ServerAddress, { spared: boolean }>();
  for (const { address } of replicas) {
    if (address === primary) continue;
    const told = replicas.filter((replica) => replica.address === address);
    const isDown = areFresh && told.every(({ down }) => down);
    candidates.set(address, { spared: isDown || told.every(({ priority }) => priority === 0) });
  }
  return candidates;
}

/**
 * Whether every Sentinel would promote a replica that holds the write before this one. False unless
 * all Sentinels answered and none is in a failover: that one may have chosen already.
 */
export function isOutranked(
  address: ServerAddress,
  holders: readonly ServerAddress[],
  views: readonly SentinelView[],
): boolean {
  if (views.length < sentinelCount(views)) return false;
  return views.every(({ replicas, failingOver }) => {
    if (failingOver) return false;
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
 * Reads the answer of a cluster's primary to CLUSTER NODES: its id and its replicas. A replica is
 * down if most primaries have agreed that it is (`fail`), not if this one alone cannot reach it
 * (`fail?`).
 * @throws Error if the node is not a primary
 */
export function readNodes(text: string): { id: string | undefined; replicas: Candidates } {
  const lines = text.split("\n").filter((line) => line !== "");
  const nodes = lines.map((line) => {
    const [id, address = "", flags = "", primary] = line.split(" ");
    return { id, address: address.split("@")[0] ?? "", flags: flags.split(","), primary };
  });
  const myself = nodes.find(({ flags }) => flags.includes("myself"));
  if (!myself?.flags.includes("master")) throw noPrimary();
  const own = nodes.filter(({ primary }) => primary === myself.id);
  const replicas = own.map(({ address, flags }): [ServerAddress, { spared: boolean }] => [
    address,
    { spared: flags.includes("fail") || flags.includes("nofailover") },
  ]);
  return { id: myself.id, replicas: new Map(replicas) };
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

/**
 * Compares the replicas that hold a write with those that could be promoted: each one that is known
 * or in sync, except those that are spared.
 * @param written the primary's offset after the write
 * @param recent replicas that were in sync a short time ago: the Sentinels may not know them yet
 * @returns `lacking`: those that must hold it and have not acknowledged it
 */
export function acknowledgedBy(
  written: number,
  { replicas }: Following,
  candidates: Candidates,
  recent: Iterable<ServerAddress> = [],
) {
  const holders = [...replicas]
    .filter(([, offset]) => offset >= written)
    .map(([address]) => address);
  const all = new Set([...replicas.keys(), ...candidates.keys(), ...recent]);
  const lacking = [...all].filter(
    (address) => !holders.includes(address) && !candidates.get(address)?.spared,
  );
  return { holders, lacking };
}

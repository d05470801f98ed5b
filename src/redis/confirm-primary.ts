import slotOf from "cluster-key-slot";
import type { Cluster } from "ioredis";
import { candidatesOf } from "./acknowledged.ts";
import { storeAway } from "./ask.ts";
import type { RedisConnector } from "./connect.ts";
import { within } from "./deadline.ts";
import { addressOf, isCluster } from "./link.ts";

const answerMs = 500;

/**
 * Makes sure that the server that serves `key` is still its primary according to most Sentinels, or
 * most of a cluster's primaries: a replaced primary does not know that it was replaced. A single
 * Redis always passes.
 * @throws GatewayError UNAVAILABLE if it is not the primary, or that cannot be found out
 */
export async function confirmPrimary(
  { client, sentinels }: Pick<RedisConnector, "client" | "sentinels">,
  key: string,
): Promise<void> {
  try {
    if (isCluster(client)) await confirmOwner(client, slotOf(key));
    else if (sentinels) candidatesOf(await sentinels.views(), addressOf(client.stream));
  } catch (error) {
    throw storeAway(error, client);
  }
}

async function confirmOwner(cluster: Cluster, slot: number): Promise<void> {
  const owner = cluster.slots[slot]?.[0];
  // Primaries with slots vote.
  const voters = cluster.nodes("master");
  const votes = await Promise.allSettled(
    voters.map(async (node) => {
      const shares = (await within(answerMs, node.call("CLUSTER", "SLOTS"))) as readonly Share[];
      const [, , primary] = shares.find(([first, last]) => first <= slot && slot <= last) ?? [];
      return primary !== undefined && `${primary[0]}:${primary[1]}` === owner;
    }),
  );
  const agree = votes.filter((vote) => vote.status === "fulfilled" && vote.value).length;
  if (agree > voters.length / 2) return;
  throw new Error(`${agree} of ${voters.length} primaries name the node that was asked`);
}

/** Who serves a range of slots, in the answer to CLUSTER SLOTS. */
type Share = readonly [first: number, last: number, primary: readonly [host: string, port: number]];

import slotOf from "cluster-key-slot";
import type { Cluster } from "ioredis";
import { candidatesOf } from "./acknowledged.ts";
import { storeAway } from "./ask.ts";
import type { RedisConnector } from "./connect.ts";
import { addressOf } from "./connector.ts";
import { within } from "./deadline.ts";
import { isCluster } from "./link.ts";

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
    if (isCluster(client)) return await confirmOwner(client, key);
    if (!sentinels) return;
    const candidates = candidatesOf(
      await sentinels.views(),
      sentinels.size,
      addressOf(client.stream),
    );
    if (typeof candidates === "string") throw new Error(candidates);
  } catch (error) {
    throw storeAway(error, client);
  }
}

async function confirmOwner(cluster: Cluster, key: string): Promise<void> {
  // EXISTS leads the pipeline to the node that serves the key.
  const pipeline = cluster.pipeline().exists(key);
  for (const question of ["MYID", "SLOTS"]) pipeline.call("CLUSTER", question);
  const answers = (await within(answerMs, pipeline.exec())) ?? [];
  const [, id, shares] = answers.map(([error, answer]) => {
    if (error) throw error;
    return answer;
  });
  // Primaries with slots vote.
  const all = new Set((shares as readonly Share[]).map(([, , [, , primary]]) => primary)).size;
  const slot = slotOf(key);
  const agree = await Promise.allSettled(
    cluster.nodes("master").map(async (node) => {
      const told = (await within(answerMs, node.call("CLUSTER", "SLOTS"))) as readonly Share[];
      return told.find(([first, last]) => first <= slot && slot <= last)?.[2][2] === id;
    }),
  );
  const votes = agree.filter((vote) => vote.status === "fulfilled" && vote.value).length;
  if (votes <= all / 2)
    throw new Error(`${votes} of ${all} primaries name the node that was asked`);
}

/** Who serves a range of slots, in the answer to CLUSTER SLOTS. */
type Share = readonly [
  first: number,
  last: number,
  primary: readonly [host: string, port: number, id: string],
];

import type { Cluster, Redis } from "ioredis";
import { candidatesOf, nodesOf } from "./acknowledged.ts";
import { storeAway } from "./ask.ts";
import type { RedisConnector } from "./connect.ts";
import { within } from "./deadline.ts";
import { isCluster } from "./link.ts";
import { addressOf } from "./sentinels.ts";

const answerMs = 500;

/**
 * Makes sure that the server that serves `key` is still its primary according to most Sentinels, or
 * most of a cluster's primaries: a replaced primary does not know that it was replaced. A single
 * Redis always passes.
 * @throws GatewayError UNAVAILABLE if it is not the primary, or that cannot be found out
 */
export async function confirmPrimary(redis: RedisConnector, key: string): Promise<void> {
  const { client, sentinels } = redis;
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
  for (const question of ["MYID", "NODES"]) pipeline.call("CLUSTER", question);
  const answers = (await within(answerMs, pipeline.exec())) ?? [];
  const [, id, nodes] = answers.map(([error, answer]) => {
    if (error) throw error;
    return String(answer);
  });
  const slot = Number(await within(answerMs, cluster.call("CLUSTER", "KEYSLOT", key)));
  // Primaries with slots vote.
  const voters = nodesOf(nodes ?? "").filter(({ flags }) => flags.includes("master"));
  const all = voters.filter(({ slots }) => slots.length > 0).length;
  const agree = await Promise.allSettled(
    cluster.nodes("master").map(async (node) => (await ownerOf(node, slot)) === id),
  );
  const votes = agree.filter((vote) => vote.status === "fulfilled" && vote.value).length;
  if (votes <= all / 2)
    throw new Error(`${votes} of ${all} primaries name the node that was asked`);
}

async function ownerOf(node: Redis, slot: number): Promise<string | undefined> {
  const shares = (await within(answerMs, node.call("CLUSTER", "SLOTS"))) as [
    first: number,
    last: number,
    primary: [host: string, port: number, id: string],
  ][];
  return shares.find(([first, last]) => first <= slot && slot <= last)?.[2][2];
}

import type { ChainableCommander } from "ioredis";
import type { RedisClient } from "./connect.ts";
import { within } from "./deadline.ts";

/** Adds commands to a pipeline. */
export type Add = (pipeline: ChainableCommander) => unknown;

const portion = 500;
const answerMs = 10_000;

/**
 * Sends many commands in their order, 500 at a time. All their keys must share a slot.
 * @throws the first error that Redis answers, or RedisTimeout
 */
export async function inPortions(client: RedisClient, commands: Iterable<Add>): Promise<void> {
  let pipeline = client.pipeline();
  const send = async () => {
    const answers = await within(answerMs, pipeline.exec());
    for (const [error] of answers ?? []) if (error) throw error;
    pipeline = client.pipeline();
  };
  for (const add of commands) {
    add(pipeline);
    if (pipeline.length >= portion) await send();
  }
  if (pipeline.length > 0) await send();
}

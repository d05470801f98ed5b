import type { Config } from "../config/config.ts";
import { troubleOf } from "../redis/ask.ts";
import { connectRedis } from "../redis/connect.ts";
import { readyWithin } from "../redis/ready-within.ts";
import { printable } from "./terminal.ts";

export const connectMs = 3_000;

/**
 * Connects to Redis, and waits up to 3 s until it takes commands. The caller closes the connection.
 * @returns `trouble`: why it does not take commands
 */
export async function reachRedis({ url, tls }: Pick<NonNullable<Config["redis"]>, "url" | "tls">) {
  let trouble: string | undefined;
  // A cluster or Sentinel set reports its first error only after all of its nodes have failed.
  const { promise: failing, resolve: onFailing } = Promise.withResolvers<void>();
  const onError = (error: Error) => {
    trouble ??= shortTroubleOf(error);
    onFailing();
  };
  const connection = connectRedis(url, onError, { tls });
  await Promise.race([readyWithin(connectMs, connection.client), failing]);
  if (connection.client.status === "ready") return { connection };
  return { connection, trouble: trouble ?? `no answer within ${connectMs / 1_000} s` };
}

/** Why Redis cannot be used, fit for one line of a terminal. */
export function shortTroubleOf(error: unknown): string {
  return printable(troubleOf(error)).slice(0, 200);
}

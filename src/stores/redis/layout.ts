import { ask } from "../../redis/ask.ts";
import type { RedisClient } from "../../redis/connect.ts";
import type { AccountKeys } from "../../redis/keys.ts";

/** The number of the layout in Redis, as open-log.lua writes it. */
export const redisLayout = "5";

/**
 * Says that Redis has an account's state in another layout than this version's, which it cannot read;
 * undefined if not, or if there is nothing of the account.
 * @throws GatewayError UNAVAILABLE if Redis does not answer
 */
export async function otherLayout(
  client: RedisClient,
  account: string,
  keys: AccountKeys,
): Promise<string | undefined> {
  const [epoch, layout] = await ask(client, () => client.hmget(keys.log, "epoch", "layout"));
  if (epoch === null || layout === redisLayout) return undefined;
  return `Redis has state of the account ${account} in layout ${layout ?? "1"}, and this gateway reads layout ${redisLayout} alone: set another REDIS_PREFIX, or take an empty Redis`;
}

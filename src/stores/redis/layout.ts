import { ask } from "../../redis/ask.ts";
import type { RedisClient } from "../../redis/connect.ts";
import type { AccountKeys } from "../../redis/keys.ts";

/** The number of the layout in Redis, as open-log.lua writes it. */
export const redisLayout = "5";

/**
 * The number of the layout that Redis has for an account, if it is another one than this version's:
 * it cannot be read. Undefined if there is nothing of the account, or Redis does not answer.
 */
export async function otherLayout(
  client: RedisClient,
  keys: AccountKeys,
): Promise<string | undefined> {
  try {
    const [epoch, layout] = await ask(client, () => client.hmget(keys.log, "epoch", "layout"));
    return epoch === null || layout === redisLayout ? undefined : (layout ?? "1");
  } catch {
    // The gateway starts while Redis is away, too.
    return undefined;
  }
}

import { ConfigError } from "./config-error.ts";
import type { Reader } from "./reader.ts";
import { boolean, directory } from "./values.ts";

/**
 * The directory in which a gateway of one process keeps its state. A gateway of a real service
 * needs a durable store, unless ALLOW_VOLATILE is set: 200 to a callback means that it is stored.
 * @throws ConfigError
 */
export function readDataDirectory(
  read: Reader,
  { sandbox, redis }: { readonly sandbox: boolean; readonly redis: boolean },
): string | undefined {
  const path = read.optional("DATA_DIR", directory);
  const allowVolatile = read("ALLOW_VOLATILE", boolean, "false");
  if (path !== undefined && redis) {
    throw new ConfigError(
      "DATA_DIR",
      "is given beside REDIS_URL, accepted is one of the two: a directory for a gateway of one process, Redis for any number of them",
    );
  }
  if (path === undefined && !redis && !sandbox && !allowVolatile) {
    throw new ConfigError(
      "DATA_DIR",
      "is missing, and so is REDIS_URL: acknowledged callbacks would be lost when the gateway restarts; accepted is a directory, or REDIS_URL, or ALLOW_VOLATILE=true to keep all state in memory",
    );
  }
  return path;
}

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { RedisClient } from "./connect.ts";

/** A Lua script that Redis runs as one atomic step. */
export interface Script {
  /**
   * One round trip; two when the server does not know the script yet, as after its restart. All keys
   * must share a slot. There is no deadline here: see `within`.
   */
  run(client: RedisClient, keys: readonly string[], args: readonly string[]): Promise<unknown>;
}

/** Reads a script from its file: `loadScript(new URL("./x.lua", import.meta.url))`. */
export function loadScript(file: URL): Script {
  const lua = readFileSync(file, "utf8");
  const sha = createHash("sha1").update(lua).digest("hex");
  return {
    async run(client, keys, args) {
      try {
        return await client.evalsha(sha, keys.length, ...keys, ...args);
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
        return await client.eval(lua, keys.length, ...keys, ...args);
      }
    },
  };
}

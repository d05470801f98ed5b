import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { ChainableCommander } from "ioredis";
import type { RedisClient } from "./connect.ts";

type Args = readonly (string | Buffer)[];

/** A Lua script that Redis runs as one atomic step. */
export type Script = ReturnType<typeof loadScript>;

/**
 * Reads a script from its file: `loadScript(new URL("./x.lua", import.meta.url))`. With several
 * files, the first ones define what the last one calls.
 */
export function loadScript(...files: readonly URL[]) {
  const lua = files.map((file) => readFileSync(file, "utf8")).join("\n");
  const sha = createHash("sha1").update(lua).digest("hex");
  async function sent(send: (command: "evalsha" | "eval", script: string) => Promise<unknown>) {
    try {
      return await send("evalsha", sha);
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      return await send("eval", lua);
    }
  }
  return {
    /**
     * One round trip; two when the server does not know the script yet, as after its restart. All
     * keys must share a slot. There is no deadline here: see `within`.
     */
    run: (client: RedisClient, keys: readonly string[], args: Args): Promise<unknown> =>
      sent((command, text) => client[command](text, keys.length, ...keys, ...args)),
    /** The same, with each text of the answer as a Buffer. */
    runBuffer: (client: RedisClient, keys: readonly string[], args: Args): Promise<unknown> =>
      sent((command, text) => client.callBuffer(command, text, keys.length, ...keys, ...args)),
    /**
     * Adds the script to a pipeline: its text if `asText`, else only its digest. For a digest that it
     * does not know yet the server answers an error that `isUnknownScript` recognizes.
     */
    queue(
      pipeline: ChainableCommander,
      keys: readonly string[],
      args: Args,
      { asText }: { readonly asText: boolean },
    ): void {
      if (asText) pipeline.eval(lua, keys.length, ...keys, ...args);
      else pipeline.evalsha(sha, keys.length, ...keys, ...args);
    },
  };
}

/** Whether the server does not know the script by its digest. Nothing was run. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

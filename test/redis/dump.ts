import assert from "node:assert/strict";
import { Redis } from "ioredis";

/** A command that makes a key of Redis again, or an entry of a stream; its arguments in base64. */
export type Command = readonly [name: string, ...args: string[]];

const base64 = (text: Buffer) => text.toString("base64");

/** The commands that make all keys of a Redis again, a key after another. */
export async function commandsOf(client: Redis): Promise<Command[]> {
  const keys = (await client.keys("*")).sort();
  const commands = keys.map(async (name): Promise<Command[]> => {
    const of = base64(Buffer.from(name));
    const type = await client.type(name);
    if (type === "string") return [["SET", of, base64((await client.getBuffer(name)) as Buffer)]];
    if (type === "hash") {
      const flat = (await client.callBuffer("HGETALL", name)) as Buffer[];
      return [["HSET", of, ...flat.map(base64)]];
    }
    if (type === "zset") {
      const pairs = (await client.callBuffer("ZRANGE", name, 0, -1, "WITHSCORES")) as [
        ...[member: Buffer, score: unknown],
      ][];
      const scored = pairs.map(([member, score]) => [Buffer.from(String(score)), member]);
      return [["ZADD", of, ...scored.flat().map(base64)]];
    }
    assert.equal(type, "stream", `${name}: no rule for this type`);
    const rows = (await client.callBuffer("XRANGE", name, "-", "+")) as [Buffer, Buffer[]][];
    return rows.map(([id, fields]) => ["XADD", of, base64(id), ...fields.map(base64)]);
  });
  return (await Promise.all(commands)).flat();
}

/**
 * All keys of a Redis server with their values as text: each byte is one character, so that texts
 * within binary values can be searched for.
 */
export async function dumpRedis(port: number): Promise<Map<string, string>> {
  const client = new Redis(port, "127.0.0.1");
  const held = new Map<string, string>();
  for (const [, ...args] of await commandsOf(client).finally(() => client.disconnect())) {
    const [key = "", ...values] = args.map((arg) => Buffer.from(arg, "base64").toString("latin1"));
    held.set(key, [...(held.has(key) ? [held.get(key)] : []), ...values].join("\n"));
  }
  return held;
}

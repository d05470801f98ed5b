import { Redis } from "ioredis";

/** Reads all keys of a Redis server; returns their values as text, by key. */
export async function dumpRedis(port: number): Promise<Map<string, string>> {
  const client = new Redis(port, "127.0.0.1");
  const held = new Map<string, string>();
  try {
    let cursor = "0";
    do {
      const [next, keys] = await client.scan(cursor, "COUNT", 1_000);
      cursor = next;
      for (const key of keys) {
        const type = await client.type(key);
        const read = readers[type];
        if (!read) throw new Error(`${key} is a ${type}`);
        const [command, ...args] = read;
        held.set(key, textOf(await client.callBuffer(command, key, ...args)));
      }
    } while (cursor !== "0");
  } finally {
    client.disconnect();
  }
  return held;
}

const readers: Readonly<Record<string, readonly [command: string, ...args: (string | number)[]]>> =
  {
    string: ["GET"],
    hash: ["HGETALL"],
    list: ["LRANGE", 0, -1],
    set: ["SMEMBERS"],
    zset: ["ZRANGE", 0, -1],
    stream: ["XRANGE", "-", "+"],
  };

/** Maps each byte to one character, so that texts within binary values can be searched for. */
function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("latin1");
  return Array.isArray(value) ? value.map(textOf).join("\n") : String(value);
}

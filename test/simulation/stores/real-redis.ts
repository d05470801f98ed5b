import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { type RedisServer, type Settings, startRedis } from "../../redis/server.ts";
import { realTimers } from "../scheduler.ts";

/** One command; with `bytes` its answer is a Buffer instead of text. */
export interface Command {
  readonly name: string;
  readonly args: readonly (string | Buffer | number)[];
  readonly bytes?: boolean;
}

export type Answer = [error: Error | null, result: unknown];

let server: Promise<RedisServer> | undefined;
let client: Redis | undefined;

/** Starts the redis-server of this process's simulations, unless it runs, and empties it. */
export async function emptyRedis(): Promise<void> {
  // As listpacks, hashes return their fields in insertion order, so each run is the same.
  const settings: Settings = [
    ["hash-max-listpack-value", "1000000"],
    ["hash-max-listpack-entries", "100000"],
  ];
  server ??= startRedis(settings);
  const { port } = await server;
  if (!client) {
    client = new Redis(port, "127.0.0.1", { lazyConnect: true, retryStrategy: () => null });
    client.on("error", () => {});
    await client.connect();
  }
  await client.flushdb();
}

/** Ends the server, which runs until then. */
export async function closeRedis(): Promise<void> {
  client?.disconnect();
  client = undefined;
  await (await server)?.close();
  server = undefined;
  loaded.clear();
}

/** Empties the server, and runs these commands again, each at its time. */
export async function refill(all: readonly (readonly [atUs: number, Command[]])[]): Promise<void> {
  const pipeline = connected().pipeline().flushdb();
  for (const [atUs, commands] of all) queue(pipeline, atUs, commands);
  pipeline.del(publishedKey);
  await answered(pipeline.exec());
}

/** Runs these commands at a time of the history; returns their answers and what they published. */
export async function run(
  atUs: number,
  commands: readonly Command[],
): Promise<{ answers: Answer[]; published: [channel: string, message: string][] }> {
  const pipeline = connected().pipeline();
  const before = queue(pipeline, atUs, commands);
  pipeline.lpop(publishedKey, 1_000);
  const all = (await answered(pipeline.exec())) ?? [];
  const [failed] = all.slice(0, before).find(([error]) => error) ?? [];
  if (failed) throw failed;
  const published = (all.at(-1)?.[1] ?? []) as string[];
  return {
    answers: all.slice(before, -1) as Answer[],
    published: published.map((text) => JSON.parse(text)),
  };
}

/** @returns how many answers come before those of the commands */
function queue(
  pipeline: ReturnType<Redis["pipeline"]>,
  atUs: number,
  commands: readonly Command[],
): number {
  let before = 1;
  for (const { name, args } of commands) {
    const lua = name === "eval" ? String(args[0]) : "";
    if (lua === "" || loaded.has(lua)) continue;
    loaded.set(lua, shaOf(prelude + lua));
    pipeline.script("LOAD", prelude + lua);
    before++;
  }
  pipeline.eval(expire, 0, atUs.toFixed(0));
  for (const { name, args, bytes } of commands) {
    const [lua, ...rest] = args;
    const sha = name === "eval" ? loaded.get(String(lua)) : undefined;
    const [command, all] = sha === undefined ? [name, args] : ["evalsha", [sha, ...rest]];
    if (bytes) pipeline.callBuffer(command, ...all);
    else pipeline.call(command, ...all);
  }
  return before;
}

/** The digests of the scripts that the server has loaded, by their text without the prelude. */
const loaded = new Map<string, string>();

export function shaOf(lua: string): string {
  return createHash("sha1").update(lua).digest("hex");
}

function connected(): Redis {
  if (!client) throw new Error("there is no redis-server: emptyRedis starts it");
  return client;
}

/** Rejects after 60 s: a server that is gone ends the simulation. */
function answered<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const silent = () => reject(new Error("the redis-server of the simulation does not answer"));
    const timer = realTimers.setTimeout(silent, 60_000);
    answer.then(resolve, reject).finally(() => realTimers.clearTimeout(timer));
  });
}

const fileOf = (name: string) => readFileSync(new URL(name, import.meta.url), "utf8");
const prelude = `${fileOf("virtual-time.lua")}\n`;
const expire = fileOf("expire.lua");
const publishedKey = "simulation:published";

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { until } from "../until.ts";

/**
 * Why tests on a real Redis cannot run here, for `skip`; false if they can. In CI they never skip:
 * without a server they fail.
 */
export const withoutRedis: string | false =
  process.env.CI || spawnSync("redis-server", ["--version"]).status === 0
    ? false
    : "needs redis-server: apt-get install redis-server";

/** A redis-server of the tests' own, on 127.0.0.1 and a free port, in a directory of its own. */
export type RedisServer = Awaited<ReturnType<typeof startRedis>>;

type Command = [name: string, ...args: (string | number)[]];

/** Names and values, such as `["appendonly", "yes"]`. */
export type Settings = readonly [name: string, value: string][];

/**
 * Starts a server with these settings; by default nothing is kept on disk. `argumentsFor` makes the
 * command line of another kind of server.
 */
export async function startRedis(
  settings: Settings = [],
  argumentsFor = async (...server: Parameters<typeof settingsFile>) => [
    await settingsFile(...server),
  ],
) {
  const dir = await mkdtemp(join(tmpdir(), "redis-"));
  const [first, port, args] = await launch();
  let child = first;
  let paused = false;

  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    if (paused) child.kill("SIGCONT");
    paused = false;
    await exited;
  };
  /** Tries again, since another process may have taken the free port. */
  async function launch(triesLeft = 5): Promise<[ChildProcess, number, string[]]> {
    const free = await freePort();
    const chosen = await argumentsFor(dir, free, settings);
    try {
      return [await run(free, dir, chosen), free, chosen];
    } catch (error) {
      if (triesLeft === 0) throw error;
      return await launch(triesLeft - 1);
    }
  }
  return {
    port,
    dir,
    url: `redis://127.0.0.1:${port}`,
    get isRunning() {
      return child.exitCode === null && child.signalCode === null;
    },
    get isPaused() {
      return paused;
    },
    /** Ends it as an operator would; the data directory stays for `start`. */
    stop: () => end("SIGTERM"),
    /** Ends it at once, as a crash would. */
    kill: () => end("SIGKILL"),
    /** Starts it again on the same port and directory, and waits until it answers. */
    async start(): Promise<void> {
      child = await run(port, dir, args);
    },
    /** Suspends the process until `resume`; its connections stay open. */
    pause(): void {
      paused = true;
      child.kill("SIGSTOP");
    },
    resume(): void {
      paused = false;
      child.kill("SIGCONT");
    },
    /** Runs one command on a connection of its own. */
    command: (...args: Command) => commandOn(port, ...args),
    /** Ends it and removes its directory. */
    async close(): Promise<void> {
      await end("SIGKILL");
      await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    },
  };
}

/** A primary and a replica that is in sync with it. */
export async function startReplicated() {
  const primary = await startRedis([["repl-diskless-sync-delay", "0"]]);
  const replica = await startRedis([["replicaof", `127.0.0.1 ${primary.port}`]]);
  await inSync(replica);
  return {
    ...{ primary, replica },
    async close() {
      await replica.close();
      await primary.close();
    },
  };
}

/** Waits until a replica has all that its primary has. */
export async function inSync(replica: Pick<RedisServer, "command">): Promise<void> {
  await until(async () =>
    String(await replica.command("INFO", "replication")).includes("master_link_status:up"),
  );
}

/** Runs one command on a connection of its own; rejects if it cannot connect. */
export async function commandOn(port: number, ...[name, ...args]: Command): Promise<unknown> {
  const client = new Redis(port, "127.0.0.1", {
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    return await client.call(name, ...args);
  } finally {
    client.disconnect();
  }
}

/**
 * A port that was free just now, below the ephemeral ports of the kernel, and that no other process
 * of the tests gets as long as this one lives: a server that restarts there finds it free, whatever
 * runs beside it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    // Linux frees a name without a file when its process ends.
    const claim = process.platform === "linux" ? `\0payments-gateway:test-port:${port}` : undefined;
    if (claim !== undefined && !(await listens(createServer().unref(), claim))) continue;
    const server = createServer();
    if (!(await listens(server, port))) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}

async function listens(server: Server, address: string | number): Promise<boolean> {
  if (typeof address === "string") server.listen(address);
  else server.listen(address, "127.0.0.1");
  return once(server, "listening").then(
    () => true,
    () => false,
  );
}

/**
 * The settings go into a file, because Sentinel makes each server save its role there: a server
 * that restarts in its first role could take the others back to its old data.
 */
export async function settingsFile(dir: string, port: number, settings: Settings): Promise<string> {
  const all: Settings = [
    ["port", String(port)],
    ["bind", "127.0.0.1"],
    ["dir", dir],
    ["save", '""'],
    ["appendonly", "no"],
    ["logfile", join(dir, "redis.log")],
    ...settings,
  ];
  const file = join(dir, "redis.conf");
  await writeFile(file, all.map(([name, value]) => `${name} ${value}\n`).join(""));
  return file;
}

async function run(port: number, dir: string, args: string[]): Promise<ChildProcess> {
  const child = spawn("redis-server", args, { stdio: "ignore" });
  ownChildren.add(child);
  child.once("exit", () => ownChildren.delete(child));
  const gone = new AbortController();
  child.once("error", (error) => gone.abort(error));
  child.once("exit", () => gone.abort(new Error(`redis-server ended, see ${dir}/redis.log`)));
  // Another server may answer on this port.
  const ours = new RegExp(`^process_id:${child.pid}\r?$`, "m");
  await until(
    async () => ours.test(String(await commandOn(port, "INFO", "server"))),
    "the server answers",
    gone.signal,
  );
  return child;
}

/** Servers to kill with this process, so that none outlives the tests, even if they end early. */
const ownChildren = new Set<ChildProcess>();
const killAll = () => {
  for (const child of ownChildren) child.kill("SIGKILL");
};
process.once("exit", killAll);
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, () => {
    killAll();
    process.kill(process.pid, signal);
  });
}

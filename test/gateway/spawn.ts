import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { commandLine } from "../command-line.ts";

const free = "127.0.0.1:0";

/** Free ports, state in memory, and no limit on calls, which a busy machine could reach. */
export const freePorts = {
  MAX_CONCURRENT_CALLS: "0",
  ALLOW_VOLATILE: "true",
  PUBLIC_ADDR: free,
  RPC_ADDR: free,
  ADMIN_ADDR: free,
  SANDBOX_ADDR: free,
};

/** A process that runs the command line. */
export type Spawned = ReturnType<typeof spawnCli>;

const children = new Set<ChildProcess>();

/**
 * Runs `payments-gateway` with these arguments. Its environment is `env`, PATH and the compile
 * cache.
 */
export function spawnCli(args: string[], env: Record<string, string>, file = commandLine) {
  const child = spawn(process.execPath, [file, ...args], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.add(child);
  /** Standard output and standard error so far, line by line. */
  const [lines, errors]: [string[], string[]] = [[], []];
  /** Exit code and signal. */
  const exit: Promise<unknown[]> = once(child, "close").finally(() => children.delete(child));
  /** URLs of the listeners that the ready line names: public, rpc, admin, sandbox. */
  const ready = new Promise<Record<string, string>>((resolve, reject) => {
    createInterface(child.stdout).on("line", (line) => {
      lines.push(line);
      if (!messageOf(line).startsWith("ready ")) return;
      const pairs = messageOf(line).split(" ").slice(1);
      resolve(Object.fromEntries(pairs.map((pair) => pair.split("="))));
    });
    exit.then(([code, signal]) => {
      const told = [...lines, ...errors].join("\n");
      reject(new Error(`ended with ${signal ?? code} before it was ready: ${told}`));
    });
  });
  ready.catch(() => {});
  createInterface(child.stderr).on("line", (line) => errors.push(line));
  return { child, lines, errors, exit, ready };
}

/** Runs a gateway on free ports, and resolves with its URLs once it is ready. */
export async function spawnGateway(env: Record<string, string> = {}) {
  const spawned = spawnCli(["serve"], { ...freePorts, LOG_LEVEL: "error", ...env });
  const { public: publicUrl = "", rpc: rpcUrl = "", admin: adminUrl = "" } = await spawned.ready;
  return {
    ...{ spawned, publicUrl, rpcUrl, adminUrl },
    async kill() {
      spawned.child.kill("SIGKILL");
      await spawned.exit;
    },
  };
}

/** Kills every process that a test has left running. */
export function killSpawned(): void {
  for (const child of children) child.kill("SIGKILL");
}

/** The message of a log record, or the line itself. */
export function messageOf(line: string): string {
  return line.startsWith("{") ? String(JSON.parse(line).msg) : line;
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { commandLine } from "../command-line.ts";
import { timeoutMs } from "../until.ts";

/** The compile cache of all runs: that of `npm test`, or a temporary one for this process. */
const compiled = process.env.NODE_COMPILE_CACHE ?? mkdtempSync(join(tmpdir(), "compiled-"));
process.on("exit", () => {
  if (!process.env.NODE_COMPILE_CACHE) rmSync(compiled, { recursive: true, force: true });
});

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly env?: Record<string, string>;
  readonly input?: string | Uint8Array;
}

/** Runs `payments-gateway` with these arguments and nothing but this environment, to its end. */
export function run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const child = start(args, options);
  child.stdin?.end(options.input ?? "");
  return ended(child);
}

/** What a process prints until its end. */
export async function ended(child: ChildProcess): Promise<Ran> {
  const [out, err, [code]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, "close"),
  ]);
  return { code, out, err };
}

/** Like `run`, but does not wait for the end. The process is killed after 2 * `timeoutMs`. */
export function start(args: readonly string[], { env = {} }: RunOptions = {}): ChildProcess {
  const child = spawn(process.execPath, [commandLine, ...args], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compiled, ...env },
    stdio: ["pipe", "pipe", "pipe"],
    timeout: timeoutMs * 2,
    killSignal: "SIGKILL",
  });
  child.stdin?.on("error", () => {});
  return child;
}

/** The environment that points commands at this gateway. */
export function placesOf(gateway: {
  readonly publicUrl: string;
  readonly rpcUrl: string;
  readonly adminUrl: string;
  readonly sandboxUrl?: string;
}): Record<string, string> {
  return {
    PAYMENTS_GATEWAY_URL: gateway.rpcUrl,
    PAYMENTS_GATEWAY_ADMIN_URL: gateway.adminUrl,
    PAYMENTS_GATEWAY_SANDBOX_URL: gateway.sandboxUrl ?? "",
  };
}

/** The text of a page with the addresses of this gateway in place of those that it shows. */
export function filledIn(text: string, gateway: Parameters<typeof placesOf>[0]): string {
  const addresses = [gateway.publicUrl, gateway.rpcUrl, gateway.adminUrl];
  return addresses
    .reduce((all, url, nth) => all.replaceAll(`http://127.0.0.1:400${nth}`, url), text)
    .replaceAll("http://127.0.0.1:4010", gateway.sandboxUrl ?? "");
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { Gateway } from "../../src/app/gateway.ts";
import { commandLine } from "../command-line.ts";
import { timeoutMs } from "../until.ts";

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

/** Like `run`, but does not wait for the end. The process is killed after `timeoutMs`. */
export function start(args: readonly string[], { env = {} }: RunOptions = {}): ChildProcess {
  const child = spawn(process.execPath, [commandLine, ...args], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    stdio: ["pipe", "pipe", "pipe"],
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  child.stdin?.on("error", () => {});
  return child;
}

type Addresses = Pick<Gateway, "publicUrl" | "rpcUrl" | "adminUrl" | "sandboxUrl">;

/** The environment that points commands at this gateway. */
export function placesOf({ rpcUrl, adminUrl, sandboxUrl = "" }: Addresses): Record<string, string> {
  return {
    PAYMENTS_GATEWAY_URL: rpcUrl,
    PAYMENTS_GATEWAY_ADMIN_URL: adminUrl,
    PAYMENTS_GATEWAY_SANDBOX_URL: sandboxUrl,
  };
}

/** The text of a page with the addresses of this gateway in place of those that it shows. */
export function filledIn(text: string, gateway: Addresses): string {
  const urls: Record<string, string> = {
    4000: gateway.publicUrl,
    4001: gateway.rpcUrl,
    4002: gateway.adminUrl,
    4010: gateway.sandboxUrl ?? "",
  };
  // In one pass: a port that the system picked may begin as one of these does (40012).
  return text.replace(/http:\/\/127\.0\.0\.1:(40[01][0-2])\b/g, (url, port) => urls[port] ?? url);
}

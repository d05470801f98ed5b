import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { patienceMs } from "../start.ts";

const cli = new URL("../../src/cli.ts", import.meta.url).pathname;
const free = "127.0.0.1:0";
const addresses = { PUBLIC_ADDR: free, RPC_ADDR: free, ADMIN_ADDR: free, SANDBOX_ADDR: free };

const children = new Set<ChildProcess>();
after(() => {
  for (const child of children) child.kill("SIGKILL");
});

test("says ready once, serves, and exits 0 on SIGTERM while a stream is open", async () => {
  const gateway = run(["serve"], addresses);
  const ready = await gateway.ready;
  const { admin = "", public: publicUrl = "", rpc = "" } = ready;
  assert.equal((await fetch(`${admin}/readyz`)).status, 200);
  assert.equal((await fetch(`${admin}/healthz`)).status, 200);
  assert.match(await (await fetch(`${admin}/metrics`)).text(), /payments_gateway_rate_limit_limit/);
  assert.equal((await fetch(`${publicUrl}/nowhere`)).status, 404);

  const stream = await fetch(`${publicUrl}/graphql`, {
    method: "POST",
    headers: { accept: "text/event-stream", "content-type": "application/json" },
    body: JSON.stringify({ query: "subscription { events { cursor } }" }),
    signal: AbortSignal.timeout(patienceMs),
  });
  assert.equal(stream.status, 200);
  assert.ok(rpc.startsWith("http://127.0.0.1:"));
  gateway.child.kill("SIGTERM");
  assert.match(await stream.text(), /UPSTREAM_UNAVAILABLE|shutting down/);
  assert.deepEqual(await gateway.exit, [0, null]);
  assert.equal(gateway.lines.filter((line) => msgOf(line).startsWith("ready ")).length, 1);
});

test("says ready at any log level, and exits 0 on SIGINT", async () => {
  const gateway = run(["serve"], { ...addresses, LOG_LEVEL: "silent" });
  await gateway.ready;
  gateway.child.kill("SIGINT");
  assert.deepEqual(await gateway.exit, [0, null]);
  assert.equal(gateway.lines.length, 1);
});

test("a wrong variable ends the process with 78 and one message that names it", async () => {
  const gateway = run(["serve"], { ...addresses, UPSTREAM_TIMEOUT: "soon" });
  assert.deepEqual(await gateway.exit, [78, null]);
  assert.match(gateway.errors.join("\n"), /^UPSTREAM_TIMEOUT: got "soon", accepted is [^\n]+$/);
});

test("an address in use ends the process with 78 and the variable's name", async () => {
  const first = run(["serve"], addresses);
  const { admin = "" } = await first.ready;
  const second = run(["serve"], { ...addresses, ADMIN_ADDR: new URL(admin).host });
  const exit = await second.exit;
  assert.deepEqual(exit, [78, null], second.errors.join("\n"));
  assert.match(second.errors.join("\n"), /^ADMIN_ADDR: cannot listen on .*EADDRINUSE/);
  first.child.kill("SIGTERM");
  assert.deepEqual(await first.exit, [0, null]);
});

test("the sandbox runs alone", async () => {
  const sandbox = run(["sandbox"], addresses);
  const { sandbox: url = "" } = await sandbox.ready;
  const answer = await fetch(`${url}/api/payouts/v1/info?external_id=none`);
  const error = (await answer.json()) as { code?: string };
  assert.equal(error.code, "authorization_failed");
  sandbox.child.kill("SIGTERM");
  assert.deepEqual(await sandbox.exit, [0, null]);
});

test("the command line explains itself", async () => {
  const help = run(["--help"], {});
  assert.deepEqual(await help.exit, [0, null]);
  assert.match(help.lines.join("\n"), /usage: payments-gateway <command>/);
  const wrong = run(["dance"], {});
  assert.deepEqual(await wrong.exit, [64, null]);
  assert.match(wrong.errors.join("\n"), /unknown command: dance/);
});

function run(args: string[], env: Record<string, string>) {
  const child = spawn(process.execPath, [cli, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.add(child);
  const lines: string[] = [];
  const errors: string[] = [];
  const exit = once(child, "close").finally(() => children.delete(child));
  const ready = new Promise<Record<string, string>>((resolve, reject) => {
    createInterface(child.stdout).on("line", (line) => {
      lines.push(line);
      if (msgOf(line).startsWith("ready ")) {
        resolve(
          Object.fromEntries(
            msgOf(line)
              .split(" ")
              .slice(1)
              .map((pair) => pair.split("=")),
          ),
        );
      }
    });
    exit.then(() => reject(new Error(`ended before it was ready: ${errors.join("\n")}`)));
  });
  ready.catch(() => {});
  createInterface(child.stderr).on("line", (line) => errors.push(line));
  return { child, lines, errors, exit, ready };
}

function msgOf(line: string): string {
  return line.startsWith("{") ? String(JSON.parse(line).msg) : line;
}

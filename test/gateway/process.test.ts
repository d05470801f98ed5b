import assert from "node:assert/strict";
import { dirname } from "node:path";
import { after, test } from "node:test";
import { scratch } from "../auth/issuer.ts";
import { tlsFile } from "../tls.ts";
import { inTime, until } from "../until.ts";
import { postGraphql } from "./callers.ts";
import { freePorts, killSpawned, messageOf, spawnCli } from "./spawn.ts";

after(killSpawned);
const files = scratch();

/** What a process that cannot start says before it ends with 78. */
async function refused(env: Record<string, string>, command = "serve"): Promise<string> {
  const { exit, errors } = spawnCli([command], { ...freePorts, ...env });
  const ended = await exit;
  assert.deepEqual(ended, [78, null], errors.join("\n"));
  return errors.join("\n");
}

test("prints ready once, serves, and exits 0 on SIGTERM while a stream is open", async () => {
  const gateway = spawnCli(["serve"], { ...freePorts, UPSTREAM_TIMOUT: "1s" });
  const ready = await gateway.ready;
  const { admin = "", public: publicUrl = "", rpc = "" } = ready;
  assert.equal((await fetch(`${admin}/readyz`)).status, 200);
  assert.equal((await fetch(`${admin}/healthz`)).status, 200);
  assert.match(await (await fetch(`${admin}/metrics`)).text(), /payments_gateway_rate_limit_limit/);
  assert.equal((await fetch(`${publicUrl}/nowhere`)).status, 404);
  const warning = gateway.lines.find((line) => line.includes("UPSTREAM_TIMOUT")) ?? "";
  assert.match(warning, /"level":"warn".*UPSTREAM_TIMOUT: is no variable of the gateway/);

  const taken = { ADMIN_ADDR: new URL(admin).host };
  assert.match(
    await refused(taken),
    /^ADMIN_ADDR: cannot listen on .*EADDRINUSE.*Set ADMIN_ADDR to/,
  );

  const stream = await postGraphql({ publicUrl }, "subscription { events { cursor } }", {
    ...{ headers: { accept: "text/event-stream" }, ...inTime() },
  });
  assert.equal(stream.status, 200);
  assert.ok(rpc.startsWith("http://127.0.0.1:"));
  gateway.child.kill("SIGTERM");
  assert.match(await stream.text(), /UPSTREAM_UNAVAILABLE|shutting down/);
  assert.deepEqual(await gateway.exit, [0, null]);
  assert.equal(gateway.lines.filter((line) => messageOf(line).startsWith("ready ")).length, 1);
  assert.deepEqual(gateway.lines.map(messageOf).slice(-1), ["stopped"]);
});

test("prints ready at any log level, and exits 0 on SIGINT", async () => {
  const gateway = spawnCli(["serve"], { ...freePorts, LOG_LEVEL: "silent" });
  await gateway.ready;
  gateway.child.kill("SIGINT");
  assert.deepEqual(await gateway.exit, [0, null]);
  assert.equal(gateway.lines.length, 1);
});

test("a warning of Node's that nobody reads does not end the process", async () => {
  const warn = 'process.emitWarning(""),setTimeout(console.log,20,"warned")';
  const hook = encodeURIComponent(`process.on("SIGUSR2",()=>{${warn}})`);
  const env = { ...freePorts, NODE_OPTIONS: `--import=data:text/javascript,${hook}` };
  const gateway = spawnCli(["serve"], env);
  await gateway.ready;
  gateway.child.stderr?.destroy();
  for (let times = 1; times <= 2; times++) {
    gateway.child.kill("SIGUSR2");
    await until(() => gateway.lines.filter((line) => line === "warned").length === times);
  }
  gateway.child.kill("SIGTERM");
  assert.deepEqual(await gateway.exit, [0, null]);
  assert.deepEqual(gateway.lines.map(messageOf).slice(-1), ["stopped"]);
});

test("all invalid variables are told at once, and the misspelt one that may be the cause", async () => {
  const env = { UPSTREAM_TIMEOUT: "soon", LOG_LEVEL: "loud", UPSTREAM_PASWORD: "canary" };
  const [first = "", second = "", third = "", ...more] = (await refused(env)).split("\n");
  assert.match(first, /^UPSTREAM_TIMEOUT: got "soon", accepted is [^\n]+$/);
  assert.match(second, /^LOG_LEVEL: got "loud"/);
  assert.match(third, /^UPSTREAM_PASWORD: is no variable .* did you mean UPSTREAM_PASSWORD\?$/);
  assert.deepEqual(more, []);
});

test("what cannot be used at start ends the process with 78 and the variable's name", async () => {
  const noDatabase = "no database, but long enough to be taken for the head of one";
  for (const [env, message] of [
    [
      { RPC_ADDR: "gateway.invalid:0", ALLOW_UNAUTHENTICATED: "true" },
      /^RPC_ADDR: cannot listen on gateway\.invalid:0 \(\w+\)$/,
    ],
    [
      {
        ...{ TLS_CERT_FILE: tlsFile("localhost.crt"), TLS_KEY_FILE: tlsFile("renewed.key") },
        ...{ AUTH_MODE: "keys", API_KEYS_FILE: "/nowhere.json" },
      },
      /^API_KEYS_FILE: .*\nTLS_KEY_FILE: is not the PEM key/,
    ],
    [
      { DATA_DIR: dirname(files.write("sandbox.sqlite", noDatabase)), ALLOW_VOLATILE: "" },
      /^DATA_DIR: the sandbox's .*: delete it/,
    ],
  ] as const) {
    assert.match(await refused(env), message);
  }
});

test("the sandbox runs as a process of its own, and ends with 78 if its address is in use", async () => {
  const first = spawnCli(["sandbox"], freePorts);
  const { sandbox = "" } = await first.ready;
  const answer = await fetch(`${sandbox}/api/payouts/v1/info?external_id=none`);
  assert.equal(((await answer.json()) as { code?: string }).code, "authorization_failed");
  const inUse = await refused({ SANDBOX_ADDR: new URL(sandbox).host }, "sandbox");
  assert.match(inUse, /^SANDBOX_ADDR: cannot listen on \S+ \(EADDRINUSE\): the port is taken/);
  first.child.kill("SIGTERM");
  assert.deepEqual(await first.exit, [0, null]);
});

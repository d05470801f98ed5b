import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { text } from "node:stream/consumers";
import { describe, it, type TestContext, test } from "node:test";
import { Sentinels } from "../../src/redis/sentinels.ts";
import { listen } from "../listen.ts";
import { ofSuite } from "../of-suite.ts";
import { until } from "../until.ts";
import { startCluster } from "./cluster.ts";
import { withoutRedis } from "./server.ts";

describe("a connection to a cluster", { skip: withoutRedis }, () => {
  const cluster = ofSuite(startCluster);

  it("lets the process exit once it is closed, even during a refresh of the slots", async () => {
    // Closes the connection in the middle of its periodic refresh of the slots.
    const source = `
      import { connectRedis } from "./src/redis/connect.ts";
      import { Secret } from "./src/secrets/secret.ts";
      const redis = connectRedis(new Secret(${JSON.stringify(cluster.url)}), () => {});
      await new Promise((resolve) => redis.client.once("ready", resolve));
      const refresh = redis.client.refreshSlotsCache;
      redis.client.refreshSlotsCache = function (...args) {
        refresh.apply(this, args);
        redis.close();
        console.log("closed while it asks");
      };`;
    const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", source], {
      stdio: ["ignore", "pipe", "inherit"],
      timeout: 30_000,
      killSignal: "SIGKILL",
    });
    const exit = new Promise((resolve) =>
      child.once("exit", (code, signal) => resolve(code ?? signal)),
    );
    assert.equal(await text(child.stdout), "closed while it asks\n");
    assert.equal(await exit, 0);
  });
});

/** A Sentinel that says what the test sets, and who asks it; `after` runs after each answer. */
async function startSentinel(t: TestContext) {
  const told = { port: "1", epoch: 1, after: () => {} };
  const array = (...texts: string[]) =>
    [`*${texts.length}`, ...texts.flatMap((text) => [`$${text.length}`, text]), ""].join("\r\n");
  const answerTo = (command: string) => {
    if (/GET-MASTER-ADDR/i.test(command)) return array("10.0.0.1", told.port);
    if (!/MASTER/i.test(command)) return "+OK\r\n";
    const { epoch } = told;
    return array("config-epoch", `${epoch}`, "num-other-sentinels", "0", "flags", "master");
  };
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (commands) => {
      for (const command of String(commands).split(/^\*/m).slice(1)) {
        socket.write(answerTo(command));
        if (/MASTER/i.test(command)) told.after();
      }
    });
  });
  t.after(() => server.close());
  const moves: string[] = [];
  const sentinels = new Sentinels({
    addresses: [{ host: "127.0.0.1", port: await listen(server) }],
    name: "payments",
    onPrimary: (primary) => moves.push(primary),
  });
  t.after(() => sentinels.close());
  return { told, sentinels, moves };
}

test("an answer of an older epoch does not bring back a primary that was replaced", async (t) => {
  const { told, sentinels, moves } = await startSentinel(t);
  const primaryAt = (epoch: number, primary: string) => {
    Object.assign(told, { epoch, port: primary });
    return sentinels.primary();
  };
  assert.equal(await primaryAt(2, "2"), "10.0.0.1:2");
  assert.equal(await primaryAt(1, "1"), "10.0.0.1:2");
  assert.equal(await primaryAt(3, "3"), "10.0.0.1:3");
  assert.deepEqual(moves, ["10.0.0.1:3"]);
});

test("a failover that ends between two answers of a Sentinel is followed", async (t) => {
  const { told, sentinels, moves } = await startSentinel(t);
  assert.equal(await sentinels.primary(), "10.0.0.1:1");
  told.after = () => Object.assign(told, { port: "2", epoch: 2 });
  await until(async () => (await sentinels.primary()) === "10.0.0.1:2");
  assert.deepEqual(moves, ["10.0.0.1:2"]);
});

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { it } from "node:test";

const script = new URL("../../bench/live.ts", import.meta.url).pathname;
const skip = spawnSync("redis-server", ["--version"]).status !== 0 && "there is no redis-server";

it("measures fan-out and reconnects with a few watchers, who miss nothing", { skip }, async () => {
  const only = "--only=raw-sse,graphql-ws,grpc,reconnect";
  const child = spawn(
    process.execPath,
    [script, only, "--watchers=3", "--events=1", "--unpinned"],
    { env: { ...process.env, NODE_TEST_CONTEXT: undefined }, stdio: ["ignore", "pipe", "pipe"] },
  );
  const closed = once(child, "close");
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  assert.equal(code, 0, errors);
  const rows = output.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
  const row = (name: string) => rows.find(([, first]) => first === name) ?? [];
  for (const name of ["raw-sse", "graphql-ws", "grpc"]) {
    assert.equal(row(name)[2], "3", output);
    assert.ok(Number(row(name)[3]) >= 0, output);
  }
  // | watchers | half, 99%, all | came back | refused | lost | repeated |
  const [, watchers, , , , back, , lost, repeated] = row("3");
  assert.deepEqual([watchers, back, lost, repeated], ["3", "3", "0", "0"], output);
});

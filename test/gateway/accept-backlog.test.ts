import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import net from "node:net";
import { after, it } from "node:test";
import { freePorts, killSpawned, spawnCli } from "./spawn.ts";

after(killSpawned);

const connections = 1_000;
const held = Number(readFileSync("/proc/sys/net/core/somaxconn", "utf8"));
const skip = held < connections && "the system holds fewer connections";

it("queues a thousand connections that arrive at once, on either listener", { skip }, async () => {
  const gateway = spawnCli(["serve"], freePorts);
  const urls = await gateway.ready;
  // A stopped process accepts nothing: only the system's backlog takes the connections.
  gateway.child.kill("SIGSTOP");
  const sockets: net.Socket[] = [];
  try {
    for (const listener of ["public", "rpc"]) {
      const port = Number(new URL(urls[listener] ?? "").port);
      let connected = 0;
      const all = Promise.withResolvers<void>();
      const late = setTimeout(all.resolve, 20_000);
      for (let i = 0; i < connections; i++) {
        const socket = net.connect(port, "127.0.0.1", () => {
          connected += 1;
          if (connected === connections) all.resolve();
        });
        socket.on("error", all.reject);
        sockets.push(socket);
      }
      await all.promise.finally(() => clearTimeout(late));
      assert.equal(connected, connections, listener);
    }
  } finally {
    for (const socket of sockets) socket.on("error", () => {}).destroy();
    gateway.child.kill("SIGCONT");
    gateway.child.kill("SIGKILL");
    await gateway.exit;
  }
});

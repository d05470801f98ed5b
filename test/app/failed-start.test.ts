import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { startTestGateway } from "../start.ts";

/** A start in a thread of its own, which ends by itself only if nothing stays open. */
const start = `
  const { parentPort, workerData } = require("node:worker_threads");
  import(workerData.module)
    .then(({ startTestGateway }) => startTestGateway(workerData.env))
    .then(() => "started", ({ name, message }) => name + " " + message)
    .then((end) => parentPort.postMessage(end));
`;

test("a start that fails leaves nothing open", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "failed-start-"));
  const busy = createServer().listen(0, "127.0.0.1");
  await once(busy, "listening");
  t.after(() => {
    busy.close();
    rmSync(directory, { recursive: true });
  });
  const keysFile = join(directory, "keys.json");
  writeFileSync(keysFile, "[]");
  const keys = { AUTH_MODE: "keys", API_KEYS_FILE: keysFile };
  const dataDirectory = join(directory, "data");
  const address = `127.0.0.1:${(busy.address() as AddressInfo).port}`;
  for (const variable of ["PUBLIC_ADDR", "RPC_ADDR", "ADMIN_ADDR", "SANDBOX_ADDR"]) {
    const env = { ...keys, DATA_DIR: dataDirectory, [variable]: address };
    const worker = new Worker(start, {
      eval: true,
      workerData: { module: new URL("../start.ts", import.meta.url).href, env },
    });
    const ended = once(worker, "exit", { signal: AbortSignal.timeout(20_000) });
    const [end] = await once(worker, "message");
    assert.match(end, new RegExp(`^ConfigError ${variable}: cannot listen on ${address}`));
    await ended.finally(() => worker.terminate());
  }
  // The lock of the directory is free, too.
  const gateway = await startTestGateway({ ...keys, DATA_DIR: dataDirectory });
  await gateway.stop();
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { heapBytes } from "../collect.ts";
import { createChurn, inUseBy, settled } from "../hardening/churn.ts";
import { startTestGateway } from "../start.ts";

/** The long form of test/hardening/heap.test.ts. */
const rounds = process.env.FAULTS === "long" ? 5 : 2;
const perRound = process.env.FAULTS === "long" ? 334 : 50;
const moreMb = 10;

const heapMb = () => heapBytes() / 1e6;

test("ten thousand calls and streams that break off leave no sockets, calls, listeners or memory", {
  timeout: 600_000,
}, async (t) => {
  // Node warns of leaked event listeners.
  const warnings: Error[] = [];
  process.on("warning", (warning) => warnings.push(warning));
  const gateway = await startTestGateway();
  t.after(() => gateway.stop());
  const churn = await createChurn(gateway);
  const idle = { sockets: 4, callsInFlight: 0 };
  const { sockets } = await inUseBy(gateway);
  const open = await churn.openStream();
  assert.ok((await inUseBy(gateway)).sockets > sockets, "the control: an open stream counts");
  open.end();
  // Warm up: code and data that are kept once are no leak.
  await churn.run(perRound);
  await settled(gateway, idle);
  const heaps = [heapMb()];
  for (let round = 0; round < rounds; round++) {
    await churn.run(perRound);
    await settled(gateway, idle);
    heaps.push(heapMb());
  }
  assert.deepEqual(warnings, []);
  t.diagnostic(`heap ${heaps.map((mb) => mb.toFixed(1)).join(", ")} MB, ${6 * perRound} each`);
  const [first = 0, last = 0] = [heaps[0], heaps.at(-1)];
  assert.ok(last < first + moreMb, `${(last - first).toFixed(1)} MB more`);
});

test("control: objects that are kept show in the heap", () => {
  const before = heapMb();
  const held = Array.from({ length: 2 * moreMb }, () =>
    Array.from({ length: 125_000 }, () => ({})),
  );
  assert.ok(heapMb() > before + moreMb);
  assert.equal(held.length, 2 * moreMb);
});

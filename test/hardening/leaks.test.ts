import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Gateway } from "../../src/app/gateway.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";
import { type Churn, createChurn, type InUse, inUseBy, settled } from "./churn.ts";

/** Most open streams of one caller in this test: low, so that leaked streams soon use it up. */
const streams = 30;

let gateway: Gateway;
let churn: Churn;

before(async () => {
  gateway = await startTestGateway({ MAX_STREAMS_PER_CALLER: String(streams) });
  churn = await createChurn(gateway);
});
after(() => gateway.stop());

/** In use at rest: the gateway and its emulator keep connections to each other. */
const idle: InUse = { sockets: 4, callsInFlight: 0 };

test("control: open streams count as sockets and towards the limit", {
  timeout: 60_000,
}, async () => {
  const open: Awaited<ReturnType<Churn["openStream"]>>[] = [];
  for (let i = 0; i < streams; i++) open.push(await churn.openStream());
  assert.ok(open.every(({ first }) => first.includes("cursor")));
  const tooMany = await churn.openStream();
  assert.match(tooMany.first, /resource_exhausted/);
  const now = await inUseBy(gateway);
  assert.ok(now.sockets > idle.sockets + streams, `${now.sockets}, before ${idle.sockets}`);
  for (const { end } of [...open, tooMany]) end();
  await settled(gateway, idle, timeoutMs);
});

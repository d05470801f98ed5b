/**
 * How a team tests its own integration in seconds: the gateway with its sandbox is one process that
 * keeps all state in memory, and a test moves its clock forward. So the test starts one of its own
 * (or its image, see docs/sandbox.md):
 *
 *   npx node --test examples/integration.test.ts
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";

const free = "127.0.0.1:0";
const addresses = { PUBLIC_ADDR: free, RPC_ADDR: free, ADMIN_ADDR: free, SANDBOX_ADDR: free };
const command = new URL("../src/cli.ts", import.meta.url).pathname;
const started = spawn(process.execPath, [command, "serve"], {
  env: { PATH: process.env.PATH, ...addresses },
  stdio: ["ignore", "pipe", "inherit"],
});
let gateway = "";
let sandbox = "";
before(async () => {
  for await (const line of createInterface(started.stdout)) {
    const { msg } = JSON.parse(line) as { msg: string };
    if (!msg.startsWith("ready ")) continue;
    gateway = / rpc=(\S+)/.exec(msg)?.[1] ?? "";
    sandbox = / sandbox=(\S+)/.exec(msg)?.[1] ?? "";
    break;
  }
});
after(() => started.kill());
const authorization = `Basic ${Buffer.from("sandbox:sandbox-password").toString("base64")}`;

/** The sandbox sends neither an answer nor a callback, not even when asked to resend it. */
const silentCard = "4000000000000838";
const goodCard = "4111111111111111";

test("an order that nobody can tell the end of is handed to an operator after a day", async () => {
  const orderId = `order-${randomUUID()}`;
  const { code } = await pay(orderId, silentCard);
  assert.equal(code, "unknown", "the money may have moved: nothing is sent again");

  await moveClock({ hours: 25 });

  const payment = await until(orderId, (told) => told.needsOperator === true);
  assert.equal(payment.state, "PAYMENT_STATE_UNKNOWN", "and it is never shown as failed");
});

test("an order is charged once, whatever the customer presses", async () => {
  const orderId = `order-${randomUUID()}`;
  await Promise.all([pay(orderId, goodCard), pay(orderId, goodCard), pay(orderId, goodCard)]);
  await until(orderId, (told) => told.state === "PAYMENT_STATE_PAID");
  const entries = await journal(orderId);
  const charged = entries.filter(({ type, outcome }) => type === "request" && outcome === "200");
  assert.equal(charged.length, 1, "as the service saw it");
});

async function pay(externalId: string, number: string): Promise<{ code?: string }> {
  return call("CreatePayment", {
    external_id: externalId,
    amount: "25.00",
    currency: "UAH",
    mode: "PAYMENT_MODE_DIRECT",
    customer: { email: "jo@example.com" },
    payment_method: { cc: { number, cvv: "123", exp_month: 12, exp_year: 2035 } },
  });
}

interface Told {
  readonly state?: string;
  readonly needsOperator?: boolean;
}

/** Reads the payment until `isWanted` accepts it, for at most 10 seconds. */
async function until(externalId: string, isWanted: (told: Told) => boolean): Promise<Told> {
  const giveUpAt = Date.now() + 10_000;
  for (;;) {
    const told: Told = await call("GetPayment", { external_id: externalId });
    if (isWanted(told)) return told;
    assert.ok(Date.now() < giveUpAt, `still ${JSON.stringify(told)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function call<Answer>(method: string, body: object): Promise<Answer> {
  const response = await fetch(`${gateway}/payments.v1.PaymentService/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await response.json()) as Answer;
}

/** Everything due by then happens now: callbacks, settlements, look-ups, giving up. */
async function moveClock({ hours }: { hours: number }): Promise<void> {
  const response = await fetch(`${sandbox}/__sandbox/clock`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({ advance_ms: hours * 3_600_000 }),
  });
  assert.equal(response.status, 200);
}

interface Entry {
  readonly type: "request" | "callback";
  readonly path?: string;
  readonly outcome: string;
}

/** The requests that the service received and the callbacks that it sent, in order. */
async function journal(externalId: string): Promise<readonly Entry[]> {
  const url = `${sandbox}/__sandbox/journal?external_id=${externalId}`;
  const response = await fetch(url, { headers: { authorization } });
  const { entries } = (await response.json()) as { entries: Entry[] };
  return entries;
}

import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { signCallback } from "../../clients/typescript/src/webhook.ts";
import { ordersIn } from "../gateway/callers.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { killExamples, startExample } from "./example.ts";

const gateway = ofSuite(startTestGateway);
after(killExamples);

function start(name: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
  const path = new URL(`../../examples/${name}`, import.meta.url).pathname;
  return startExample(process.execPath, [path, ...args], {
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    PAYMENTS_GATEWAY_URL: gateway.rpcUrl,
    ...env,
  });
}

const noFunds = "4000000000000614";

describe("the service example", () => {
  for (const [what, args, line, exit] of [
    ["prints the final status", ["order-1"], "PAID 25.00 UAH (transaction_successful)", 0],
    ["prints why a card is declined", ["order-3", noFunds], "declined: insufficient_funds", 1],
    [
      "reports a payment that a normal answer declines as FAILED",
      ["order-6", "4000000000000770"],
      "FAILED 25.00 UAH (transaction_declined)",
      1,
    ],
    // The sandbox breaks the connection instead of answering, and sends the callback.
    [
      "waits for the outcome when the answer is lost",
      ["order-4", "4000000000000762"],
      "PAID 25.00 UAH (transaction_successful)",
      0,
    ],
  ] as const) {
    it(what, async () => {
      const ended = await start("service.ts", args).exit;
      assert.deepEqual(ended, { code: exit, lines: [line] });
    });
  }

  it("pays an order once, also when it runs again", async () => {
    const { code } = await start("service.ts", ["order-1"]).exit;
    assert.equal(code, 0);
    const orders = await ordersIn(gateway.sandboxUrl);
    assert.equal(orders.filter((order) => order === "order-1").length, 1);
  });
});

describe("the grpc-js example", () => {
  it("pays and watches in plain JavaScript", async () => {
    const { code, lines } = await start("grpc-js.js", ["order-5"]).exit;
    assert.ok(lines.includes("EVENT_SOURCE_RESPONSE PAYMENT_STATE_PAID"), lines.join("\n"));
    assert.ok(
      lines.some((line) => line.startsWith("answered 25.00 as ")),
      lines.join("\n"),
    );
    assert.equal(code, 0);
  });
});

describe("the integration test example", () => {
  it("passes", async () => {
    const { code, lines } = await start("integration.test.ts").exit;
    assert.equal(code, 0, lines.join("\n"));
    assert.ok(
      lines.some((line) => line.endsWith("pass 2")),
      lines.join("\n"),
    );
  });
});

describe("the webhook example", () => {
  it("accepts only signed callbacks", async () => {
    const password = "a password";
    const args = { WEBHOOK_PASSWORD: password };
    const { child, exit, seen } = start("webhook-receiver.ts", ["0"], args);
    const url = (await seen(/^listening on /)).replace("listening on ", "");
    const body = Buffer.from('{"external_id":"order-9","details":{"status":"success"}}');
    const post = async (signature: string) => {
      const headers = { "x-service-signature": signature };
      return (await fetch(url, { method: "POST", body, headers })).status;
    };
    assert.equal(await post(signCallback(body, "another")), 401);
    assert.equal(await post(signCallback(body, password)), 200);
    child.kill();
    const { lines } = await exit;
    assert.ok(lines.includes("order-9: success"));
  });
});

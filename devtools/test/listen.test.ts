import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { buffer } from "node:stream/consumers";
import { after, test } from "node:test";
import { verify } from "../../src/wire/signature.ts";
import { run } from "../../test/cli/resident.ts";
import { placesOf } from "../../test/cli/run.ts";
import { startCuttingProxy } from "../../test/cutting-proxy.ts";
import { sendCallback } from "../../test/gateway/callers.ts";
import { killSpawned, spawnCli } from "../../test/gateway/spawn.ts";
import { serve } from "../../test/listen.ts";
import { closing, ofSuite } from "../../test/of-suite.ts";
import { startTestGateway } from "../../test/start.ts";
import { until } from "../../test/until.ts";
import { valuesOf } from "../../test/values-of.ts";

const gateway = ofSuite(startTestGateway);

/** Sends the gateway a callback of the payments service. */
function tell(
  externalId: string,
  status: string,
  { publicUrl = gateway.publicUrl, kind = "payments", operation = "payment" } = {},
): Promise<void> {
  const subject = `${externalId}-subject`;
  const payment = {
    external_id: externalId,
    details: { payment_id: subject, status, amount: "10.10", currency: "UAH" },
    payment_method: { type: "cc_token", cc_token: { token: "tok-canary" } },
    operation,
    surprise: "not in the contract",
  };
  const payout = { external_id: externalId, transaction_id: subject, status };
  const told = kind === "payments" ? payment : payout;
  return sendCallback({ publicUrl }, told, { path: `default/${kind}` });
}

interface Line {
  event: { cursor: string; external_id: string; payment?: { details: { status: string } } };
  forward?: { answer: number | string; accepted: boolean; attempts: number };
}

after(killSpawned);

/** A running `listen` that prints JSON. */
function listen(...args: string[]) {
  const all = ["listen", "--after", "earliest", "--json", ...args];
  const { lines, errors, exit } = spawnCli(all, placesOf(gateway));
  return { lines, errors, exit, told: () => lines.map((line) => JSON.parse(line) as Line) };
}

test("prints the events that its options select, and ends after --limit events", async () => {
  await tell("show-1", "pending");
  await tell("show-1", "success");
  await tell("show-2", "failure");
  await tell("show-3", "success", { kind: "payouts" });
  const shown = async (...args: string[]) => {
    const env = placesOf(gateway);
    const { code, out, err } = await run(["listen", "--after", "earliest", ...args], { env });
    assert.equal(code, 0, err);
    return out;
  };
  const payouts = await shown("--kind", "payout", "--limit", "1");
  assert.match(payouts, /^\S+Z {2}payout {3}show-3 .* success .* callback\n$/);
  const failures = await shown("--status", "failure", "--limit", "1", "--json");
  assert.equal(JSON.parse(failures).event.external_id, "show-2");
  const one = await shown("--external-id", "show-1", "--limit", "2", "--json");
  const events = one
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as Line).event);
  assert.deepEqual(
    events.map(({ payment }) => payment?.details.status),
    ["PAYMENT_STATUS_PENDING", "PAYMENT_STATUS_SUCCESS"],
  );
  assert.ok(!one.includes("tok-canary"), "tokens to pay with are not shown");
  const behind = await shown("--after", events[0]?.cursor ?? "", "--limit", "1", "--json");
  assert.equal(JSON.parse(behind).event.cursor, events[1]?.cursor);
});

test("neither loses nor repeats events when connections are cut, and reports a gateway with a new log", async (t) => {
  const first = await startTestGateway();
  const proxy = closing(t, await startCuttingProxy(first.rpcUrl));
  const ids = Array.from({ length: 40 }, (_, index) => `cut-${index}`);
  const seen = listen("--url", proxy.url, "--limit", "41");
  for (const [index, id] of ids.entries()) {
    await tell(id, "success", first);
    // Events that arrive while it is disconnected are not lost either.
    if (index % 10 === 4) await until(() => seen.lines.length >= index);
    if (index % 10 !== 6) continue;
    proxy.cut();
    proxy.mend();
  }
  await until(() => seen.lines.length >= 40);
  assert.ok(proxy.connections >= 4);
  proxy.cut();
  await first.stop();
  const second = closing(t, await startTestGateway());
  await tell("new", "success", second);
  proxy.mend(second.rpcUrl);
  assert.deepEqual(await seen.exit, [0, null]);
  assert.deepEqual(
    seen.told().map(({ event }) => event.external_id),
    [...ids, "new"],
  );
  const errors = seen.errors.join("\n");
  assert.match(errors, /the stream broke \(.*\), again in \d+\.\d s/);
  assert.match(errors, /some may be missing before the next/);
});

test("ends cleanly on SIGINT, and prints the cursor to resume from", async () => {
  await tell("end-1", "success");
  const args = ["listen", "--after", "earliest", "--external-id", "end-1"];
  const { child, lines, errors, exit } = spawnCli(args, placesOf(gateway));
  await until(() => lines.length > 0);
  child.kill("SIGINT");
  assert.deepEqual(await exit, [0, null]);
  assert.match(errors.join("\n"), /^listening to http.*\ngo on behind the last one: --after \S+$/);
});

test("forwards signed callbacks, and retries each until 200 or --forward-attempts", async (t) => {
  const received: { url: string; headers: IncomingHttpHeaders; body: Buffer }[] = [];
  const service = createServer(async (request, response) => {
    const { url = "", headers } = request;
    received.push({ url, headers, body: await buffer(request) });
    const { external_id } = JSON.parse(received.at(-1)!.body.toString());
    // A redirect does not count as accepted, and is not followed.
    const statuses: Record<string, number> = {
      "hook-1": 200,
      "hook-2": received.length === 2 ? 302 : 200,
    };
    response.writeHead(statuses[external_id] ?? 500, { location: "/elsewhere" }).end();
  });
  const local = await serve(t, service);
  await tell("hook-1", "success");
  await tell("hook-2", "expired", { operation: "chargeback" });
  await tell("hook-3", "success");
  await tell("hook-1", "success", { kind: "payouts" });
  const seen = listen(
    ...["--external-id", "hook-1", "hook-2", "hook-3", "--limit", "4"],
    ...["--forward-to", `${local}/hooks/{kind}`, "--forward-attempts", "2"],
  );
  assert.deepEqual(await seen.exit, [1, null]);
  assert.deepEqual(
    seen
      .told()
      .map(({ event, forward }) => [event.external_id, forward?.answer, forward?.attempts]),
    [
      ["hook-1", 200, 1],
      ["hook-2", 200, 2],
      ["hook-3", 500, 2],
      ["hook-1", 200, 1],
    ],
  );
  assert.match(seen.errors.at(-1) ?? "", /1 of the callbacks were not accepted/);
  assert.deepEqual(valuesOf(received, "url"), [
    ...Array(5).fill("/hooks/payments"),
    "/hooks/payouts",
  ]);
  for (const { headers, body } of received) {
    const header = headers["x-service-signature"] as string;
    assert.ok(verify(body, header, ["sandbox-password"]));
    assert.ok(!verify(body, header, ["other"]));
  }
  assert.deepEqual(JSON.parse(received[0]!.body.toString()), {
    external_id: "hook-1",
    details: { payment_id: "hook-1-subject", status: "success", amount: "10.10", currency: "UAH" },
    payment_method: { type: "cc_token", cc_token: { token: "tok-canary" } },
    operation: "payment",
  });
  const strange = JSON.parse(received[1]!.body.toString());
  assert.deepEqual([strange.operation, strange.details.status], ["chargeback", "expired"]);
});

test("an unreachable gateway ends with 69, an invalid cursor with 64", async () => {
  const nobody = await run(["listen", "--url", "http://127.0.0.1:1"]);
  assert.equal(nobody.code, 69);
  assert.match(nobody.err, /cannot reach the gateway/);
  const rubbish = await run(["listen", "--after", "rubbish"], { env: placesOf(gateway) });
  assert.equal(rubbish.code, 64);
  assert.match(rubbish.err, /after_cursor: is not a cursor/);
});

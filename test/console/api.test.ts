import assert from "node:assert/strict";
import { test } from "node:test";
import { magicValues } from "../../sandbox/ledger/scenarios.ts";
import type {
  Calls,
  History,
  SandboxResult,
  Scenarios,
  Status,
} from "../../src/admin/console-api.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { paymentTold, sendCallback } from "../gateway/callers.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { until } from "../until.ts";

/** The gateway's log. */
const lines: string[] = [];
// Nothing listens there: calls are traced, and their spans go nowhere.
const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
const log = createLogger("info", { write: (line) => void lines.push(line) });
const gateway = ofSuite(() => startTestGateway(env, {}, log));

async function get<T>(path: string): Promise<T> {
  const response = await fetch(gateway.adminUrl + path);
  assert.equal(response.status, 200, path);
  return (await response.json()) as T;
}

async function post(path: string, body: string, type = "application/json") {
  const response = await fetch(gateway.adminUrl + path, {
    method: "POST",
    headers: { "content-type": type },
    body,
  });
  const answered = (await response.json()) as { error: string; kind: string };
  return { status: response.status, body: answered };
}

const order = { scenario: "success", by: "card" };

async function pay(about: object): Promise<SandboxResult> {
  const { status, body } = await post(
    "/api/sandbox/payments",
    JSON.stringify({ ...order, ...about }),
  );
  assert.equal(status, 200);
  return body as unknown as SandboxResult;
}

test("the list of magic values has no full card number", async () => {
  const { scenarios } = await get<Scenarios>("/api/sandbox");
  assert.deepEqual(
    scenarios.map(({ name, card, cents }) => [name, card, cents]),
    magicValues.map(({ scenario, cards, cents }) => [scenario.name, cards[0]?.slice(-4), cents]),
  );
  assert.doesNotMatch(JSON.stringify(scenarios), /\d{12}/);
});

test("a trial returns what a caller of the gateway would have received", async () => {
  assert.deepEqual(await pay({ externalId: "t-1" }), {
    kind: "answered",
    status: "success",
    statusCode: "transaction_successful",
  });
  const challenge = await pay({ externalId: "t-2", scenario: "3ds" });
  assert.ok(challenge.kind === "answered");
  assert.match(challenge.actionUrl ?? "", /^http:\/\/127\.0\.0\.1:\d+\/3ds\//);
  const byAmount = { scenario: "insufficient_funds", by: "amount" };
  const declined = await pay({ externalId: "t-3", ...byAmount });
  assert.ok(declined.kind === "refused");
  assert.equal(declined.upstreamCode, "insufficient_funds");
  const lost = await pay({ externalId: "t-4", scenario: "answer_and_callback_lost" });
  assert.equal(lost.kind, "unknown");
  const { calls } = await get<Calls>("/api/calls");
  const call = calls.find(({ externalId }) => externalId === "t-4");
  assert.deepEqual(
    [call?.state, call?.method, call?.checks, call?.needsOperator],
    ["unknown", "CreatePayment", 0, false],
  );
  assert.ok((call?.nextLookMs ?? 0) > Date.now());
});

test("a wrong trial is refused with the reason", async () => {
  const wrong = (about: object) =>
    post("/api/sandbox/payments", JSON.stringify({ ...order, externalId: "wrong", ...about }));
  for (const [about, message] of [
    [{ scenario: "none" }, /there is no such scenario/],
    [{ scenario: "3ds", by: "amount" }, /no amount triggers/],
    [{ externalId: "" }, /^externalId: /],
    [{ more: 1 }, /Unrecognized key/],
  ] as const) {
    const { status, body } = await wrong(about);
    assert.equal(status, 400);
    assert.match(body.error, message);
  }
  const refused = await pay({ externalId: "é".repeat(200) });
  assert.ok(refused.kind === "refused");
  assert.equal(refused.code, "INVALID_ARGUMENT");
  assert.equal((await post("/api/sandbox/payments", "{")).status, 400);
  assert.equal(
    (await post("/api/sandbox/payments", JSON.stringify(order), "text/plain")).status,
    415,
  );
  assert.equal((await post("/api/sandbox/payments", `"${"x".repeat(20_000)}"`)).status, 413);
  assert.equal((await post("/api/sandbox/none", "{}")).status, 404);
  assert.equal((await post("/api/sandbox", "{}")).status, 405);
});

test("a history has the messages as the REST API writes them, with secrets and card numbers masked", async () => {
  const token = "tok_of_a_card_that_is_secret";
  const number = "4000000000003014";
  const { details, ...paid } = paymentTold("1234567812345670");
  await sendCallback(gateway, {
    ...{ ...paid, details: { ...details, amount: 12.5 } },
    payment_method: { type: "cc_token", cc_token: { token, mask: "400000******3014" } },
    customer: { first_name: `paid with ${number}` },
  });
  const path = "/api/history?kind=payment&external_id=1234567812345670";
  const { events } = await get<History>(path);
  const [event] = events;
  assert.deepEqual(
    [event?.source, event?.final, event?.status, event?.amount, event?.currency],
    ["CALLBACK", true, "success", "12.5", "UAH"],
  );
  const message = JSON.parse(event?.message ?? "{}");
  assert.equal(message.external_id, "1234567812345670", "an id that only looks like a card");
  assert.equal(message.payment_method.cc_token.token, "[redacted]");
  assert.equal(message.payment_method.cc_token.mask, "400000******3014");
  assert.equal(message.customer.first_name, "paid with 400000******3014");
  assert.match(event?.traceId ?? "", /^[0-9a-f]{32}$/);
  const all = JSON.stringify(events);
  assert.ok(!all.includes(token) && !all.includes(number));
  assert.deepEqual((await get<History>("/api/history?kind=payout&external_id=none")).events, []);
  const bad = await fetch(`${gateway.adminUrl}/api/history?kind=refund&external_id=x`);
  assert.equal(bad.status, 400);
});

test("a history has the state, the operations and the open calls of its payment alone", async () => {
  await pay({ externalId: "h-1" });
  await pay({ externalId: "h-2", scenario: "answer_and_callback_lost" });
  const of = (id: string) => get<History>(`/api/history?kind=payment&external_id=${id}`);
  const paid = await of("h-1");
  const [operation] = paid.operations;
  assert.deepEqual(
    [paid.state, paid.calls, operation?.operation, operation?.status, operation?.amount],
    ["paid", [], "payment", "success", "10.00"],
  );
  const lost = await of("h-2");
  assert.deepEqual([lost.state, lost.operations, lost.calls.length], ["unknown", [], 1]);
  assert.equal(lost.calls[0]?.externalId, "h-2");
  assert.equal((await of("none")).state, undefined);
});

test("what an operator asks the service is asked, and refused in words", async () => {
  const about = (externalId: string, kind = "payment") =>
    JSON.stringify({ account: "default", kind, externalId });
  const ask = async (path: string, body: string) => (await post(path, body)).body.kind;
  assert.equal(await ask("/api/resend-callback", about("h-1")), "asked");
  assert.equal(await ask("/api/resend-callback", about("4000000000003014")), "refused");
  const ofPayout = await ask("/api/resend-callback", about("h-1", "payout"));
  assert.equal(ofPayout, "refused", "the payment of that id is not asked for");
  assert.equal(await ask("/api/look-up", about("h-1")), "refused", "nothing is open");
  assert.equal(await ask("/api/look-up", about("h-2")), "scheduled");
  await until(async () => {
    const { state } = await get<History>("/api/history?kind=payment&external_id=h-2");
    return state === "paid";
  });
  const made = JSON.stringify({ ...order, externalId: "h-3" });
  assert.equal((await post("/api/sandbox/payouts", made)).status, 200);
  // Its callback, which settles it, comes a second later: from then on the service is asked at once.
  assert.match(await ask("/api/look-up", about("h-3", "payout")), /^(scheduled|asked)$/);
  assert.equal((await post("/api/look-up", about("h-3", "refund"))).status, 400);
  const told = lines
    .filter((line) => line.includes("operator asked"))
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    told.map(({ operator, action, externalId }) => [operator, action, externalId]),
    [
      ["anonymous", "resend callback", "h-1"],
      ["anonymous", "resend callback", "400000******3014"],
      ["anonymous", "look up", "h-1"],
      ["anonymous", "look up", "h-2"],
      ["anonymous", "look up", "h-3"],
    ],
  );
});

test("a query that is refused names the parameter", async () => {
  for (const [path, name] of [
    ["/api/history?kind=refund&external_id=h-1", "kind"],
    ["/api/history?kind=payment", "external_id"],
    [`/api/history?kind=payment&external_id=${"x".repeat(1_001)}`, "external_id"],
  ] as const) {
    const response = await fetch(gateway.adminUrl + path);
    const { error } = (await response.json()) as { error: string };
    assert.deepEqual([response.status, error.split(":")[0]], [400, name]);
  }
});

test("the status reports this replica, its budget, the service and the callbacks", async () => {
  await pay({ externalId: "s-1" });
  await pay({ externalId: "s-2", scenario: "html_500" });
  const { replica, budget, upstream, history, callbacks, notReady } =
    await get<Status>("/api/status");
  assert.equal(replica.pid, process.pid);
  assert.deepEqual(notReady, []);
  assert.equal(budget.source, "own");
  assert.equal(history.length, 60);
  assert.ok(history.at(-1)?.remaining !== null, "it is sampled as it is looked at");
  const [caller] = budget.callers;
  assert.equal(caller?.caller, "console");
  assert.ok(caller && caller.calls >= 2 && caller.refused === 0);
  assert.ok(upstream.minute.failed >= 1 && upstream.minute.calls > upstream.minute.failed);
  assert.ok(["degraded", "failing"].includes(upstream.health));
  assert.ok((callbacks.stored ?? 0) >= 1);
});

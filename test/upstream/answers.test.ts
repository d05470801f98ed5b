import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import { type ErrorCode, reasonOf } from "../../src/errors.ts";
import { ErrorType, UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { PaymentMethodInputSchema } from "../../src/gen/payments/v1/payment_input_pb.ts";
import { PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import { RequestPayoutRequestSchema } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { GetConfirmationStatusRequestSchema } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import { intakeLimits } from "../../src/net/intake-limits.ts";
import { createMemoryBudget } from "../../src/net/memory-budget.ts";
import type { RateLimitHeaders } from "../../src/ratelimit/bucket.ts";
import type { Upstream } from "../../src/upstream/upstream.ts";
import { valuesOf } from "../values-of.ts";
import {
  createPayment,
  deactivate,
  deleteWalletItem,
  failureOf,
  findItems,
  getOperation,
  getPayout,
  good,
  hostedPayment,
  patient,
  requestPayout,
  resendCallback,
  serverRig,
} from "./rig.ts";
import { answer, json, type Script } from "./scripted-server.ts";

const card = { number: "4111111111111111", cvv: "123" };
const payByCard = (upstream: Upstream, value = card, description = "order 123") =>
  upstream.createPayment(
    {
      ...{ ...hostedPayment, description },
      paymentMethod: create(PaymentMethodInputSchema, { method: { case: "cc", value } }),
    },
    patient,
  );

/** What a call makes of an answer of HTTP status 200. */
async function readFrom<T>(
  t: TestContext,
  body: string,
  call: (upstream: Upstream) => Promise<T>,
): Promise<T> {
  return call((await serverRig(t, json(200, body))).upstream);
}

const errorObject =
  '{"code":"insufficient_funds","message":"Not enough money","param":"amount",' +
  '"payment_id":"pay-1","type":"payment_error","error_id":"err-1"}';

test("createPayment returns the payment's data, and accepted credentials are reported once", async (t) => {
  const { upstream, calls, credentials, settled } = await serverRig(
    t,
    json(
      201,
      '{"id":"p-1","external_id":"order-1","is_success":true,"action":null,"operation":"payment",' +
        '"details":{"amount":"10.10","status":"success","payment_id":"pay-1"}}',
      "X-RateLimit-Limit: 20",
      "X-RateLimit-Remaining: 19",
      "X-RateLimit-Reset: 1",
    ),
  );
  const { externalId, details: { amount, status } = {} } = await createPayment(upstream);
  assert.deepEqual([externalId, amount, status], ["order-1", "10.10", PaymentStatus.SUCCESS]);
  assert.deepEqual(calls, [{ endpoint: "POST /api/payments/v1/new", outcome: "201" }]);
  assert.deepEqual(settled, [["observe", { limit: "20", remaining: "19", reset: "1" }]]);

  await createPayment(upstream);
  assert.deepEqual(credentials, [true], "told once, not for each call");
});

test("an answer may begin with a byte order mark, as a callback may", async (t) => {
  const paid = '\ufeff{"external_id":"order-1","id":"p-1"}';
  assert.equal((await readFrom(t, paid, createPayment)).id, "p-1");
  const declined = await serverRig(t, json(400, `\ufeff${errorObject}`));
  const failure = await failureOf(createPayment(declined.upstream));
  assert.equal(failure.details.upstream?.code, "insufficient_funds");
});

test("a decline that quotes the card in its description is stored and shown without it", async (t) => {
  const body = JSON.stringify({
    external_id: "order-1",
    details: {
      status: "failure",
      description: "order 123",
      status_description: "cvv 123 of 4111 1111 1111 1111 declined",
    },
  });
  const { details } = await readFrom(t, body, payByCard);
  assert.equal(details?.statusDescription, "cvv [redacted] of 4111 11** **** 1111 declined");
  assert.equal(details?.description, "order 123", "the merchant's own words stay");
});

test("a word that is not known is shown and reported without the card that it quotes", async (t) => {
  const word = "declined: cvv 123";
  const body = { id: "p-1", operation: word, details: { status: word }, code: "x", type: word };
  for (const [status, paths] of [
    [200, ["operation", "details.status"]],
    [400, ["type"]],
  ] as const) {
    const { upstream, faults } = await serverRig(t, json(status, JSON.stringify(body)));
    const paid = payByCard(upstream);
    const { unrecognized = [] } =
      status === 200 ? await paid : ((await failureOf(paid)).details.upstream ?? {});
    const told = valuesOf([...unrecognized, ...faults], "value");
    assert.deepEqual(told, Array(2 * paths.length).fill("declined: cvv [redacted]"));
  }
  const order = JSON.stringify({ transaction_id: "t", status: "refused 4token4" });
  const { upstream, faults } = await serverRig(t, json(200, order));
  const cardData = { token: "4token4" };
  const payout = await upstream.requestPayout(
    create(RequestPayoutRequestSchema, { recipient: { card: { cardData } } }),
    patient,
  );
  const told = valuesOf([...payout.unrecognized, ...faults], "value");
  assert.deepEqual(told, Array(2).fill("refused [redacted]"));
});

test("answers about payouts, wallet items, operations and subscriptions are read", async (t) => {
  const payout = '{"external_id":"order-1","fc_id":7,"status":"ok"}';
  assert.equal((await readFrom(t, payout, getPayout)).fcId, 7n);
  assert.equal((await readFrom(t, payout, requestPayout)).status, "ok");

  for (const [body, ids] of [
    ['[{"option_id":"a"},{"option_id":"b","name":"x"}]', ["a", "b"]],
    ['{"option_id":"a","type":"card"}', ["a"]],
    ["[]", []],
    ["{}", []],
    ["null", []],
  ] as const) {
    const items = await readFrom(t, body, findItems);
    assert.deepEqual(valuesOf(items, "optionId"), ids, body);
  }

  // The spec does not show these shapes: they yield no item, and are reported as unknown_shape.
  const strange = '{"items":[{"option_id":"a"}],"total":1}';
  for (const text of [strange, `[${strange}]`, "[{}]"]) {
    const unknown = await serverRig(t, json(200, text));
    assert.deepEqual(await findItems(unknown.upstream), [], text);
    assert.deepEqual(valuesOf(unknown.faults, "kind"), ["unknown_shape"], text);
  }
  for (const text of [strange, "{}"]) {
    const unknown = await serverRig(t, json(200, text));
    const asked = create(GetConfirmationStatusRequestSchema, { optionId: "a" });
    assert.equal(await unknown.upstream.getConfirmationStatus(asked, patient), undefined, text);
    const [fault] = unknown.faults;
    assert.deepEqual([fault?.kind, unknown.faults.length], ["unknown_shape", 1], text);
  }
  const anError = await serverRig(t, json(200, '{"code":"card_not_found","message":"none"}'));
  assert.equal((await failureOf(findItems(anError.upstream))).code, "NOT_FOUND");
  assert.deepEqual(anError.faults, [], "an Error object is no fault");

  const deleted = '{"delete":true,"option_id":"a","type":"card"}';
  assert.equal((await readFrom(t, deleted, deleteWalletItem)).deleted, true);
  const operation = '{"id":"o","details":{"amount":10.10}}';
  assert.equal((await readFrom(t, operation, getOperation)).details?.amount, "10.10");
  assert.equal((await readFrom(t, '{"message":"ended"}', deactivate)).message, "ended");
  const object = '{"code":"unsubscribed_successfully","message":"gone","type":"api_error"}';
  assert.equal((await readFrom(t, object, deactivate)).message, "gone");
  const refused = object.replace("unsubscribed_successfully", "x");
  await assert.rejects(readFrom(t, refused, deactivate), { code: "UNAVAILABLE" });
});

test("a field of an unexpected type is left unset and reported, and the call succeeds", async (t) => {
  const { upstream, faults } = await serverRig(
    t,
    json(200, '{"external_id":{"no":"text"},"details":[]}'),
  );
  const payment = await createPayment(upstream);
  assert.equal(payment.externalId, undefined);
  assert.deepEqual(faults.map((fault) => `${fault.endpoint} ${fault.path}`).sort(), [
    "POST /api/payments/v1/new details",
    "POST /api/payments/v1/new external_id",
  ]);
});

test("an answer in chunked encoding that arrives in pieces is read whole", async (t) => {
  const { upstream } = await serverRig(t, ({ socket }) => {
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n");
    setImmediate(() => {
      socket.write(Buffer.from('{"id":"\r\n1\r\n'));
      setImmediate(() => socket.write('x\r\n2\r\n"}\r\n0\r\n\r\n'));
    });
  });
  assert.equal((await createPayment(upstream)).id, "x");
});

test("any 2xx to callback/resend, and an empty one to a subscription call, counts as success", async (t) => {
  for (const script of [
    json(200, "{}"),
    answer(200, "<html>ok</html>"),
    answer(202, ""),
    "HTTP/1.1 204 No Content\r\n\r\n",
    json(200, '{"message":"sent"}'),
  ]) {
    const { upstream } = await serverRig(t, script);
    assert.equal(await resendCallback(upstream), undefined);
  }
  const { upstream } = await serverRig(t, "HTTP/1.1 204 No Content\r\n\r\n");
  assert.equal((await deactivate(upstream)).message, undefined);
});

const reads = [getPayout, getOperation, findItems];

for (const status of [200, 400, 402, 409]) {
  test(`an Error object with HTTP status ${status} becomes the error of its code`, async (t) => {
    const { upstream, settled, causes } = await serverRig(t, json(status, errorObject));
    for (const call of [...reads, createPayment, requestPayout, resendCallback, deactivate]) {
      const error = await failureOf(call(upstream));
      const { code, message, details } = error;
      assert.deepEqual(
        [code, message],
        ["FAILED_PRECONDITION", "insufficient_funds: Not enough money"],
      );
      const reason = { domain: "payments-service", reason: "INSUFFICIENT_FUNDS" };
      assert.deepEqual(reasonOf(error), reason);
      assert.equal(details.outcomeUnknown, undefined);
      assert.deepEqual(
        details.upstream,
        create(UpstreamErrorSchema, {
          ...{ code: "insufficient_funds", message: "Not enough money", param: "amount" },
          ...{ paymentId: "pay-1", type: ErrorType.PAYMENT_ERROR, errorId: "err-1" },
          httpStatus: status,
        }),
      );
    }
    assert.deepEqual(new Set(settled.map(([what]) => what)), new Set(["observe"]));
    assert.deepEqual(new Set(causes), new Set([undefined]));
  });
}

test("an Error object in a 200 is one even with members of a result", async (t) => {
  const withMembers = (members: string) =>
    serverRig(t, json(200, errorObject.replace("{", `{${members},`)));
  for (const members of [
    '"status":"failure"',
    '"external_id":"order-1"',
    '"external_id":"order-1","details":["no money"]',
    '"id":"p-1","is_success":false,"details":{"amount":"1"}',
    '"transaction_id":"","status":"","external_id":"","details":{"status":""},"option_id":""',
  ]) {
    for (const call of [...reads, createPayment, requestPayout, deactivate]) {
      const { upstream, faults } = await withMembers(members);
      const error = await failureOf(call(upstream));
      assert.equal(error.code, "FAILED_PRECONDITION", members);
      assert.equal(error.details.upstream?.code, "insufficient_funds");
      assert.deepEqual(faults, [], "an Error object is no fault");
    }
  }

  const paid = await withMembers('"external_id":"order-1","details":{"status":"success"}');
  const payment = await createPayment(paid.upstream);
  assert.equal(payment.details?.status, PaymentStatus.SUCCESS, "data of a payment says more");

  const mixedUp = await withMembers('"external_id":"order-2"');
  const unknown = await failureOf(createPayment(mixedUp.upstream));
  assert.deepEqual(unknown.details.outcomeUnknown, { externalId: "order-1" });
});

test("a 200 that only resembles an Error object is read as a result", async (t) => {
  const [item] = await readFrom(t, '{"type":"card","option_id":"a"}', findItems);
  assert.equal(item?.type, "card");
  const message = '{"message":"done","type":"subscription"}';
  assert.equal((await readFrom(t, message, deactivate)).message, "done");
  const payment = '{"id":"p","code":"x","message":"y"}';
  assert.equal((await readFrom(t, payment, createPayment)).id, "p");
});

const compressed = gzipSync('{"id":"p-1"}');
const notUnderstood = "HTTP 200, and the answer was not understood";
const breaksRules = "the answer breaks the rules of HTTP/1.1";
const senseless: Array<[what: string, cause: string, script: Script]> = [
  ["HTML with 502", "HTTP 502", answer(502, "<html>Bad Gateway</html>", "Content-Type: text/html")],
  ["HTML with 200", notUnderstood, answer(200, "<html>Login</html>", "Content-Type: text/html")],
  ["truncated JSON", notUnderstood, json(200, '{"id":"p-1","det')],
  ["an empty body", notUnderstood, answer(200, "")],
  ["a JSON string", notUnderstood, json(200, '"ok"')],
  ["an empty 500", "HTTP 500", answer(500, "")],
  ["what is not HTTP", breaksRules, "p-1"],
  [
    "a 100 Continue that was not asked for",
    breaksRules,
    `HTTP/1.1 100 Continue\r\n\r\n${json(200, '{"id":"p-1"}')}`,
  ],
  [
    "an answer with two lengths",
    breaksRules,
    'HTTP/1.1 200 OK\r\nContent-Length: 12\r\nContent-Length: 5\r\n\r\n{"id":"p-1"}',
  ],
  [
    "a compressed answer, which the gateway does not request",
    notUnderstood,
    ({ socket }) => {
      const length = `Content-Length: ${compressed.length}`;
      socket.write(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n${length}\r\n\r\n`);
      socket.write(compressed);
    },
  ],
];
for (const [what, cause, script] of senseless) {
  test(`${what} makes a read UNAVAILABLE and leaves a money call's outcome unknown`, async (t) => {
    const { upstream, server, taken, settled, causes } = await serverRig(t, script);
    const outcomeUnknown = { externalId: "order-1" };
    for (const [call, code, told] of [
      [getPayout, "UNAVAILABLE", { reason: "UPSTREAM_UNAVAILABLE", retryAfterMs: 1_000 }],
      [createPayment, "UNKNOWN", { reason: "OUTCOME_UNKNOWN", outcomeUnknown }],
    ] as const) {
      const { details, message, ...error } = await failureOf(call(upstream));
      const { upstream: _, ...others } = details;
      assert.deepEqual([error.code, others], [code, told]);
      assert.doesNotMatch(message, /html|p-1/);
    }
    assert.deepEqual(
      server.requests.map(({ line }) => line.split(" ")[0]),
      ["GET", "GET", "GET", "POST"],
      "money is not sent again",
    );
    assert.deepEqual([taken.length, settled.length], [4, 4], "each with its own token");
    assert.deepEqual(causes, Array(4).fill(cause));
  });
}

test("a body of over 1 MiB fails the call, with and without Content-Length", async (t) => {
  const { answerBytes } = intakeLimits;
  const bodyOf = (bytes: number) => `{"id":"o-1"}`.padEnd(bytes);
  const long = bodyOf(answerBytes + 1);
  for (const script of [
    json(200, long),
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${long.length.toString(16)}\r\n${long}\r\n`,
  ]) {
    const { upstream, causes } = await serverRig(t, script);
    assert.equal((await failureOf(createPayment(upstream))).code, "UNKNOWN");
    assert.equal((await failureOf(getPayout(upstream))).code, "UNAVAILABLE");
    assert.deepEqual(causes, Array(2).fill("the answer was too long"));
  }
  const { upstream } = await serverRig(t, json(200, bodyOf(answerBytes)));
  assert.equal((await createPayment(upstream)).id, "o-1");
});

test("answers count in the budget of memory, which may drop that of a read", async (t) => {
  const long = `{"id":"o-1","x":"${"x".repeat(40_000)}"}`;
  const budget = createMemoryBudget(10_000);
  const { upstream } = await serverRig(t, json(200, long), { budget });
  assert.equal((await failureOf(getPayout(upstream))).code, "UNAVAILABLE");
  assert.equal((await createPayment(upstream)).id, "o-1", "a call that moves money keeps its own");
  assert.equal(budget.bytes, 0);
  const roomy = createMemoryBudget(1_000_000);
  const control = await serverRig(t, json(200, long), { budget: roomy });
  await getPayout(control.upstream);
  assert.equal(roomy.bytes, 0);
});

test("a small piece of a body counts as 256 bytes", async (t) => {
  const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const pieces = (count: number) => `e\r\n{"id":"o-1",  \r\n${"1\r\n \r\n".repeat(count)}`;
  const end = '9\r\n"x":true}\r\n0\r\n\r\n';
  const all = intakeLimits.answerBytes / 256;
  const few = await serverRig(t, `${head}${pieces(all - 2)}${end}`);
  assert.equal((await createPayment(few.upstream)).id, "o-1");
  const many = await serverRig(t, `${head}${pieces(all - 1)}${end}`);
  assert.equal((await failureOf(createPayment(many.upstream))).code, "UNKNOWN");
});

/* `error-codes.test.ts` has every code that leaves the outcome open. */
test("only an error code or type, a 401 or a 429 rejects a money call", async (t) => {
  const bodies: Array<[status: number, body: string, code: ErrorCode]> = [
    [400, '{"code":"wrong_amount"}', "INVALID_ARGUMENT"],
    [400, '{"code":"a_code_of_tomorrow"}', "INVALID_ARGUMENT"],
    [400, '{"type":"payment_error","message":"no"}', "FAILED_PRECONDITION"],
    [500, errorObject, "UNKNOWN"],
    [400, '{"code":"internal_error","type":"api_error"}', "UNKNOWN"],
    [200, '{"code":"timeout","message":"late"}', "UNKNOWN"],
    [200, '{"ok":true}', "UNKNOWN"],
    [400, '{"message":"no"}', "UNKNOWN"],
    [400, '{"error":"no"}', "UNKNOWN"],
    [400, "", "UNKNOWN"],
    [402, "<html>no</html>", "UNKNOWN"],
    [403, "<html>no</html>", "UNKNOWN"],
    // It may come from a proxy, which does not prove that the service never received the call.
    [404, "<html>no</html>", "UNKNOWN"],
    [409, "<html>no</html>", "UNKNOWN"],
    [401, "<html>Who are you?</html>", "INTERNAL"],
    [429, "<html>Slow down</html>", "RESOURCE_EXHAUSTED"],
  ];
  for (const [status, body, code] of bodies) {
    const { upstream } = await serverRig(t, answer(status, body));
    for (const call of [createPayment, requestPayout]) {
      const error = await failureOf(call(upstream));
      assert.equal(error.code, code, `${status} ${body}`);
      if (status !== 200) assert.equal(error.details.upstream?.httpStatus, status);
      if (code === "UNKNOWN") {
        assert.deepEqual(error.details.outcomeUnknown, { externalId: "order-1" });
        assert.equal(error.details.retryAfterMs, undefined);
      } else assert.equal(error.details.outcomeUnknown, undefined);
      const [, said] = /"code":"(\w+)"/.exec(body) ?? [];
      if (said) assert.equal(error.details.upstream?.code, said, "the Error object is kept");
    }
  }
});

test("payment data with a 4xx is a result; other JSON with a 4xx is not", async (t) => {
  const failure = '{"id":"p-1","details":{"status":"failure","status_code":"card_expired"}}';
  // A service may send each of its fields, empty where it has nothing to say.
  const blank = '{"code":"","message":"","param":"","payment_id":"","type":"","error_id":"",';
  for (const body of [failure, failure.replace("{", blank)]) {
    const { upstream } = await serverRig(t, json(402, body));
    assert.equal((await createPayment(upstream)).details?.status, PaymentStatus.FAILURE);
  }

  const other = await serverRig(t, json(404, '{"status":"404","error":"no such path"}'));
  assert.equal((await failureOf(requestPayout(other.upstream))).code, "UNKNOWN");
  assert.equal((await failureOf(getPayout(other.upstream))).code, "UNAVAILABLE");
});

const slowDown = ["X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 3"];
const all = { limit: "5", remaining: "0", reset: "3" };
const none = { limit: undefined, remaining: undefined, reset: undefined };
const limited = '{"code":"too_many_requests","type":"api_error"}';
type Limited = [what: string, script: string, retryAfterMs: number, headers: RateLimitHeaders];
const limits: Limited[] = [
  ["429 with all headers", answer(429, "slow down", ...slowDown), 3000, all],
  ["429 with Retry-After", answer(429, "", "Retry-After: 7"), 7000, none],
  ["429 without a word", answer(429, ""), 1000, none],
  ["429 with an empty code", json(429, '{"code":"","message":"","type":""}'), 1000, none],
  [
    "too_many_requests with a nonsense Reset",
    json(400, '{"code":"too_many_requests"}', "X-RateLimit-Reset: -4"),
    1000,
    { ...none, reset: "-4" },
  ],
  [
    "too_many_requests in a 200",
    json(200, limited, "X-RateLimit-Reset: 2"),
    2000,
    { ...none, reset: "2" },
  ],
];
for (const [what, script, retryAfterMs, headers] of limits) {
  test(`${what} is RESOURCE_EXHAUSTED and is reported to the token bucket`, async (t) => {
    const { upstream, settled } = await serverRig(t, script);
    for (const call of [createPayment, getPayout]) {
      const { code, details } = await failureOf(call(upstream));
      const { upstream: said, ...others } = details;
      assert.equal(code, "RESOURCE_EXHAUSTED");
      assert.deepEqual(others, { reason: "RATE_LIMITED", retryAfterMs, notAttempted: true });
      assert.deepEqual(
        [said?.code, said?.message, said?.type],
        ["too_many_requests", "Too many requests", ErrorType.API_ERROR],
      );
    }
    assert.deepEqual(settled, Array(2).fill(["rejected", headers]));
  });
}

test("a limit of attempts is RESOURCE_EXHAUSTED, but not a rejection by the rate limit", async (t) => {
  const { upstream, settled } = await serverRig(
    t,
    json(403, '{"code":"reached_the_limit_of_attempts_for_ip"}', "Retry-After: 30"),
  );
  const error = await failureOf(createPayment(upstream));
  assert.equal(error.code, "RESOURCE_EXHAUSTED");
  assert.equal(error.details.retryAfterMs, 30_000);
  assert.equal(settled[0]?.[0], "observe");
});

test("refused merchant credentials are INTERNAL and reported once, as is their acceptance", async (t) => {
  const scripts = [
    json(401, '{"code":"authorization_failed","message":"Wrong login"}'),
    answer(401, "<html>"),
    good,
  ];
  const { upstream, credentials } = await serverRig(t, ({ socket }) => {
    socket.write(scripts.shift() ?? "");
  });
  const first = await failureOf(createPayment(upstream));
  assert.equal(first.code, "INTERNAL");
  assert.equal(first.details.upstream?.code, "authorization_failed");
  assert.equal((await failureOf(getPayout(upstream))).code, "INTERNAL");
  assert.deepEqual(credentials, [false]);
  await getPayout(upstream);
  assert.deepEqual(credentials, [false, true]);
});

test("a refused customer token does not count as refused merchant credentials", async (t) => {
  for (const [script, code] of [
    [
      json(401, '{"code":"customer_auth_token_expired_or_invalid","type":"customer_error"}'),
      "UNAUTHENTICATED",
    ],
    [answer(401, ""), "UNAUTHENTICATED"],
    [json(401, '{"code":"authorization_failed"}'), "INTERNAL"],
  ] as const) {
    const { upstream, credentials } = await serverRig(t, script);
    assert.equal((await failureOf(findItems(upstream))).code, code);
    assert.deepEqual(credentials, []);
  }
});

test("card data, tokens and the login that an error quotes are redacted", async (t) => {
  const message =
    "4111 1111 1111 1111 with cvv 737 (not 17371) and Basic " +
    "bWVyY2hhbnQ6Z2VoZWltLdC60LvRjtGH of geheim-ключ";
  const said = { code: "invalid_card_data", message, param: "5555555555554444" };
  const { upstream } = await serverRig(t, json(400, JSON.stringify(said)));
  const error = await failureOf(payByCard(upstream, { ...card, cvv: "737" }));
  assert.equal(
    error.message,
    "invalid_card_data: 4111 11** **** 1111 with cvv [redacted] (not 17371) and Basic " +
      "[redacted] of [redacted]",
  );
  assert.equal(error.details.upstream?.param, "555555******4444");

  const quoted = await serverRig(t, json(401, '{"code":"invalid_token","message":"customer-jwt"}'));
  assert.equal((await failureOf(findItems(quoted.upstream))).message, "invalid_token: [redacted]");
});

test("the login that a description quotes is redacted", async (t) => {
  const said = "bWVyY2hhbnQ6Z2VoZWltLdC60LvRjtGH of geheim-ключ";
  const { description } = await readFrom(t, JSON.stringify({ description: said }), getPayout);
  assert.equal(description, "[redacted] of [redacted]");
});

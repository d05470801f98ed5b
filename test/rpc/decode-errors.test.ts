import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { CreatePaymentRequest } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { answeredPayment } from "../core/answers.ts";
import { closing } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { scrapeUntil } from "../telemetry/scrape.ts";
import { envelope, http2Call, start } from "./start.ts";

const card = "4111111111111111";

/** Each message begins with the field that it names, unless it is about the request as a whole. */
const refused: readonly (readonly [name: string, body: string, message: string])[] = [
  [
    "a number where text belongs",
    `{"paymentMethod":{"cc":{"number":${card}}}}`,
    "payment_method.cc.number: must be a string",
  ],
  [
    "half of a surrogate pair",
    `{"external_id":"${card}\\ud800"}`,
    "external_id: must be Unicode, without half of a surrogate pair",
  ],
  [
    "text where a number belongs",
    `{"paymentMethod":{"cc":{"exp_month":"${card}x"}}}`,
    "payment_method.cc.exp_month: must be an integer of 32 bits",
  ],
  [
    "text where a message belongs",
    `{"paymentMethod":"${card}"}`,
    "payment_method: must be an object",
  ],
  [
    "a value that the enum lacks",
    `{"mode":"${card}"}`,
    "mode: must be PAYMENT_MODE_DIRECT, PAYMENT_MODE_HOSTED or PAYMENT_MODE_EXPRESS_CHECKOUT",
  ],
  ["text where a list belongs", `{"products":"${card}"}`, "products: must be a list"],
  [
    "a wrong field of a list's item",
    `{"products":[{"tax_group":1},{"tax_group":"${card}"}]}`,
    "products[1].tax_group: must be an integer of 32 bits",
  ],
  ["text where a boolean belongs", `{"confirm":"${card}"}`, "confirm: must be true or false"],
  ["a field that does not exist", '{"confrim":false}', "confrim: is not a field of the request"],
  [
    "a field that does not exist inside another",
    `{"customer":{"e_mail":"${card}"}}`,
    "customer.e_mail: is not a field of the request",
  ],
  [
    "a field given by both of its names",
    `{"external_id":"a","externalId":"${card}"}`,
    "external_id: is given twice",
  ],
  [
    "two ways to pay",
    `{"paymentMethod":{"cc":{"number":"${card}"},"wallet":{}}}`,
    "payment_method: may hold only one of cc, cc_token, wallet, apple_pay, google_pay, decrypted_apple_pay, decrypted_google_pay",
  ],
  [
    "two ways to pay beside a null",
    `{"paymentMethod":{"apple_pay":null,"cc":{"number":"${card}"},"wallet":{}}}`,
    "payment_method: may hold only one of cc, cc_token, wallet, apple_pay, google_pay, decrypted_apple_pay, decrypted_google_pay",
  ],
  [
    "a null in a list beside one in a oneof",
    '{"products":[null],"paymentMethod":{"cc":{},"wallet":null}}',
    "products[0]: must be an object",
  ],
  [
    "a wrong field of a message that several fields hold",
    `{"paymentMethod":{"ccToken":{"token":${card}}}}`,
    "payment_method.cc_token.token: must be a string",
  ],
  ["a value in a field's place", `{"${card}":false}`, "the request has a key that is not a field"],
  [
    "a value in the place of a field inside another",
    `{"customer":{"${card}":false}}`,
    "customer: has a key that is not a field",
  ],
  ["text that is not JSON", `{"number":${card}x}`, "the request is not a JSON object"],
  ["a list for a request", `["${card}"]`, "the request is not a JSON object"],
  ["a key given twice", `{"amount":"1","amount":"${card}"}`, 'the key "amount" is given twice'],
  ["a value given twice as a key", `{"${card}":1,"${card}":2}`, "a key is given twice"],
  [
    "a value that looks like a refusal",
    `{"mode":": duplicate object key \\"tok${card}"}`,
    "mode: must be PAYMENT_MODE_DIRECT, PAYMENT_MODE_HOSTED or PAYMENT_MODE_EXPRESS_CHECKOUT",
  ],
];

const userMessage = { locale: "en", message: "The payment is not possible like this." };

for (const [name, body, message] of refused) {
  const [, field, description] = /^(\S+): (.*)$/.exec(message) ?? [];
  test(`${name} is refused without its value in the response or the log`, async () => {
    await using started = await start();
    const connect = await started.post("CreatePayment", body);
    assert.equal(connect.status, 400);
    const told = (await connect.json()) as { details: { debug: unknown }[] };
    const { details, ...rest } = told;
    assert.deepEqual(rest, { code: "invalid_argument", message });
    assert.deepEqual(
      details.map(({ debug }) => debug),
      field === undefined
        ? [{ reason: "INVALID_ARGUMENT", domain: "payments-gateway" }, userMessage]
        : [
            { reason: "INVALID_FIELDS", domain: "payments-gateway" },
            { fieldViolations: [{ field, description }] },
            userMessage,
          ],
    );

    await started.logged(({ message }) => message === "rpc");
    assert.equal(started.calls.length, 0);
    assert.doesNotMatch(JSON.stringify(started.records), new RegExp(card));
    assert.deepEqual(
      started.records.map(({ level, code }) => [level, code]),
      [["info", "INVALID_ARGUMENT"]],
    );
  });
}

test("null beside the member of a oneof is absent, as elsewhere", async () => {
  await using started = await start({ createPayment: async () => answeredPayment() });
  const method = '{"wallet":null,"cc_token":{"token":"t"},"cc":null}';
  const body = `{"amount":"1","currency":"UAH","mode":"PAYMENT_MODE_HOSTED","external_id":"o","payment_method":${method}}`;
  await started.post("CreatePayment", body);
  const request = started.calls[0]?.request as CreatePaymentRequest | undefined;
  assert.equal(request?.paymentMethod?.method.case, "ccToken");
});

test("a wrong time is named, also one that no calendar has", async () => {
  const seen: (bigint | undefined)[] = [];
  await using started = await start({
    async listPayments({ firstSeenBefore }) {
      seen.push(firstSeenBefore?.seconds);
      return { edges: [], hasNextPage: false, hasPreviousPage: false, endCursor: undefined };
    },
  });
  const ask = (at: string) =>
    started.post("ListPayments", `{"pageSize":1,"firstSeenBefore":"${at}"}`);
  for (const at of [
    ...["2026-01-01", "2026-02-31T00:00:00Z", "2026-02-01T24:00:00Z", "2026-06-31T00:00:00Z"],
    "2026-02-29T00:00:00+02:00",
  ]) {
    const answer = await ask(at);
    assert.equal(answer.status, 400, at);
    const { message } = (await answer.json()) as { message: string };
    assert.equal(message, 'first_seen_before: must be a time such as "2026-01-31T12:00:00Z"');
  }
  assert.equal((await ask("2028-02-29T23:59:59.5+02:00")).status, 200);
  assert.deepEqual(seen, [1_835_474_399n]);
});

test("a message in a URL that is not base64 is an invalid argument", async () => {
  await using started = await start();
  const path =
    "/payments.v1.PaymentService/GetPayment?connect=v1&encoding=proto&base64=1&message=C*";
  const answer = await fetch(`http://127.0.0.1:${started.port}${path}`);
  assert.equal(answer.status, 400);
  const { code, message } = (await answer.json()) as { code: string; message: string };
  assert.deepEqual([code, message], ["invalid_argument", "the message in the URL is not base64"]);
  const [record] = started.records;
  assert.deepEqual([record?.level, record?.code], ["info", "INVALID_ARGUMENT"]);
});

test("a gzip that stops early is an invalid argument", async () => {
  await using started = await start();
  const body = gzipSync('{"amount":"1"}').subarray(0, 15);
  const answer = await started.post("CreatePayment", body, { "content-encoding": "gzip" });
  assert.equal(answer.status, 400);
  assert.equal(((await answer.json()) as { code: string }).code, "invalid_argument");
});

test("metrics do not count a wrongly flagged message as an internal error of the gateway", async (t) => {
  const gateway = closing(t, await startTestGateway());
  const session = http2.connect(gateway.rpcUrl);
  t.after(() => session.destroy());
  const head = { "content-type": "application/grpc", te: "trailers" };
  const stream = session.request(http2Call("CreatePayment", head));
  stream.resume().end(envelope(Buffer.of(0), 1));
  const [headers] = await once(stream, "response");
  assert.equal(headers["grpc-status"], "13");
  const code = "INTERNAL";
  const { value } = await scrapeUntil(
    gateway,
    ({ sum }) => sum("rpc_requests_total", { code }) > 0,
  );
  assert.equal(value("internal_errors_total", { edge: "rpc" }), 0);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { startTestGateway } from "../start.ts";
import { until } from "../until.ts";
import { start } from "./start.ts";

const createPayment = "/payments.v1.PaymentService/CreatePayment";
const card = "4111111111111111";

const refused: readonly {
  name: string;
  body: string;
  /** The field that is named, unless the message is about the request as a whole. */
  field?: string;
  message: string;
}[] = [
  {
    name: "a number where text belongs",
    body: `{"paymentMethod":{"cc":{"number":${card}}}}`,
    field: "payment_method.cc.number",
    message: "must be a string",
  },
  {
    name: "text where a number belongs",
    body: `{"paymentMethod":{"cc":{"exp_month":"${card}x"}}}`,
    field: "payment_method.cc.exp_month",
    message: "must be an integer of 32 bits",
  },
  {
    name: "text where a message belongs",
    body: `{"paymentMethod":"${card}"}`,
    field: "payment_method",
    message: "must be an object",
  },
  {
    name: "a value that the enum lacks",
    body: `{"mode":"${card}"}`,
    field: "mode",
    message: "must be PAYMENT_MODE_DIRECT, PAYMENT_MODE_HOSTED or PAYMENT_MODE_EXPRESS_CHECKOUT",
  },
  {
    name: "the service's own word for an enum's value",
    body: '{"recipient":{"payment_method":{"type":"iban"}}}',
    field: "recipient.payment_method.type",
    message:
      "must be RECIPIENT_PAYMENT_METHOD_TYPE_IBAN, RECIPIENT_PAYMENT_METHOD_TYPE_CC_TOKEN, RECIPIENT_PAYMENT_METHOD_TYPE_WALLET or RECIPIENT_PAYMENT_METHOD_TYPE_CC_NUMBER",
  },
  {
    name: "a list where a message belongs",
    body: `{"paymentMethod":["${card}"]}`,
    field: "payment_method",
    message: "must be an object",
  },
  {
    name: "text where a list belongs",
    body: `{"products":"${card}"}`,
    field: "products",
    message: "must be a list without null, each item of its type",
  },
  {
    name: "a wrong field of a list's item",
    body: `{"products":[{"tax_group":"${card}"}]}`,
    field: "products.tax_group",
    message: "must be an integer of 32 bits",
  },
  {
    name: "text where a boolean belongs",
    body: `{"confirm":"${card}"}`,
    field: "confirm",
    message: "must be true or false",
  },
  {
    name: "a field that does not exist",
    body: '{"confrim":false}',
    field: "confrim",
    message: "is not a field of the request",
  },
  {
    name: "a field that does not exist inside another",
    body: `{"customer":{"e_mail":"${card}"}}`,
    field: "customer.e_mail",
    message: "is not a field of the request",
  },
  {
    name: "a field given by both of its names",
    body: `{"external_id":"a","externalId":"${card}"}`,
    field: "external_id",
    message: "is given twice",
  },
  {
    name: "two ways to pay",
    body: `{"paymentMethod":{"cc":{"number":"${card}"},"wallet":{}}}`,
    field: "payment_method",
    message:
      "may hold only one of cc, cc_token, wallet, apple_pay, google_pay, decrypted_apple_pay, decrypted_google_pay",
  },
  {
    name: "a wrong field of a message that several fields hold",
    body: `{"paymentMethod":{"ccToken":{"token":${card}}}}`,
    field: "payment_method",
    message: "token must be a string",
  },
  {
    name: "a value in a field's place",
    body: `{"${card}":false}`,
    message: "the request has a key that is not a field",
  },
  {
    name: "a value in the place of a field inside another",
    body: `{"customer":{"${card}":false}}`,
    field: "customer",
    message: "has a key that is not a field",
  },
  {
    name: "text that is not JSON",
    body: `{"number":${card}x}`,
    message: "the request is not a JSON object",
  },
  {
    name: "a list for a request",
    body: `["${card}"]`,
    message: "the request is not a JSON object",
  },
  {
    name: "a key given twice",
    body: `{"amount":"1","amount":"${card}"}`,
    message: 'the key "amount" is given twice',
  },
];

const userMessage = { locale: "en", message: "The payment is not possible like this." };

for (const { name, body, field, message: description } of refused) {
  const message = field === undefined ? description : `${field}: ${description}`;
  test(`${name} is refused without its value in the response or the log`, async () => {
    await using started = await start();
    const connect = await fetch(started.url + createPayment, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
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

    const envelope = Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), Buffer.from(body)]);
    const grpc = await grpcPost(started.port, "application/grpc+json", envelope);
    assert.equal(grpc["grpc-status"], "3");
    assert.equal(decodeURIComponent(String(grpc["grpc-message"])), message);
    const bytes = Buffer.from(String(grpc["grpc-status-details-bin"]), "base64");
    assert.match(bytes.toString("latin1"), field ? /INVALID_FIELDS/ : /INVALID_ARGUMENT/);
    assert.doesNotMatch(bytes.toString("latin1"), new RegExp(card));

    await started.logged(({ protocol }) => protocol === "grpc");
    assert.equal(started.calls.length, 0);
    assert.doesNotMatch(JSON.stringify(started.records), new RegExp(card));
    assert.deepEqual(
      started.records.map(({ level, code }) => [level, code]),
      [
        ["info", "INVALID_ARGUMENT"],
        ["info", "INVALID_ARGUMENT"],
      ],
    );
  });
}

const unreadable: readonly {
  name: string;
  type: string;
  encoding?: string;
  body: Buffer<ArrayBuffer>;
}[] = [
  { name: "a truncated message", type: "application/proto", body: Buffer.from([0x0a, 9, 1]) },
  {
    name: "bytes that no gzip wrote",
    type: "application/json",
    encoding: "gzip",
    body: Buffer.from("no"),
  },
  {
    name: "a gzip that stops early",
    type: "application/json",
    encoding: "gzip",
    body: gzipSync('{"amount":"1"}').subarray(0, 15),
  },
];

for (const { name, type, encoding, body } of unreadable) {
  test(`${name} is an invalid argument`, async () => {
    await using started = await start();
    const answer = await fetch(started.url + createPayment, {
      method: "POST",
      headers: { "content-type": type, ...(encoding ? { "content-encoding": encoding } : {}) },
      body,
    });
    assert.equal(answer.status, 400);
    assert.equal(((await answer.json()) as { code: string }).code, "invalid_argument");
  });
}

test("a message over the limit is refused, also if it exceeds the limit only when decompressed", async () => {
  await using started = await start({}, { limits: { readMaxBytes: 10_000 } });
  const large = JSON.stringify({ description: "x".repeat(20_000) });
  for (const [body, encoding] of [
    [Buffer.from(large), "identity"],
    [gzipSync(large), "gzip"],
  ] as const) {
    const answer = await fetch(started.url + createPayment, {
      method: "POST",
      headers: { "content-type": "application/json", "content-encoding": encoding },
      body,
    });
    assert.equal(answer.status, 429);
    assert.equal(((await answer.json()) as { code: string }).code, "resource_exhausted");
  }
  assert.equal(started.calls.length, 0);
});

const flagged = Buffer.from([1, 0, 0, 0, 1, 0]);

test("a message flagged as compressed without an encoding header is the caller's mistake", async () => {
  await using started = await start();
  for (const type of ["application/grpc", "application/grpc+proto", "application/grpc+json"]) {
    const seen = await grpcPost(started.port, type, flagged);
    assert.equal(seen["grpc-status"], "13");
    assert.match(decodeURIComponent(String(seen["grpc-message"])), /flagged as compressed/);
  }
  for (const [type, path] of [
    ["application/grpc-web", createPayment],
    ["application/connect+proto", "/payments.v1.PaymentService/WatchPayment"],
  ] as const) {
    const answer = await fetch(started.url + path, {
      method: "POST",
      headers: { "content-type": type },
      body: flagged,
    });
    assert.match(await answer.text(), /grpc-status: 13|"code":"internal"/);
  }
  await started.logged(() => started.records.length === 5);
  const calls = started.records.map(({ level, code, reason }) => ({ level, code, reason }));
  const expected = { level: "info", code: "INTERNAL", reason: "COMPRESSION_NOT_NAMED" };
  assert.deepEqual(calls, Array(5).fill(expected));
  assert.equal(started.calls.length, 0);
});

test("an unreadable request of a stream is logged with the reason INVALID_ARGUMENT", async () => {
  await using started = await start();
  for (const [type, body] of [
    ["application/connect+proto", Buffer.from([0xff, 0xff])],
    ["application/connect+json", Buffer.from("[]")],
  ] as const) {
    const head = Buffer.from([0, 0, 0, 0, body.length]);
    const answer = await fetch(`${started.url}/payments.v1.PaymentService/WatchPayment`, {
      method: "POST",
      headers: { "content-type": type },
      body: Buffer.concat([head, body]),
    });
    assert.match(await answer.text(), /"code":"invalid_argument"/);
  }
  await started.logged(() => started.records.length === 2);
  const reasons = started.records.map(({ reason }) => reason);
  assert.deepEqual(reasons, ["INVALID_ARGUMENT", "INVALID_ARGUMENT"]);
});

test("metrics do not count a wrongly flagged message as an internal error of the gateway", async (t) => {
  const gateway = await startTestGateway();
  t.after(() => gateway.stop());
  const { port } = new URL(gateway.rpcUrl);
  assert.equal((await grpcPost(Number(port), "application/grpc", flagged))["grpc-status"], "13");
  let metrics = "";
  await until(async () => {
    metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    return /^payments_gateway_rpc_requests_total\{.*code="INTERNAL".*\} 1$/m.test(metrics);
  });
  assert.match(metrics, /^payments_gateway_internal_errors_total\{.*edge="rpc".*\} 0$/m);
});

/** Posts to CreatePayment over HTTP/2 and resolves with headers and trailers together. */
async function grpcPost(
  port: number,
  type: string,
  body: Buffer,
): Promise<Record<string, unknown>> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  const stream = session.request({
    ":method": "POST",
    ":path": createPayment,
    "content-type": type,
    te: "trailers",
  });
  const seen: Record<string, unknown> = {};
  stream.on("response", (headers) => Object.assign(seen, headers));
  stream.on("trailers", (trailers) => Object.assign(seen, trailers));
  stream.resume();
  stream.end(body);
  await once(stream, "close");
  session.close();
  return seen;
}

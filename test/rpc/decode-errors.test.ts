import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { start } from "./start.ts";

const createPayment = "/payments.v1.PaymentService/CreatePayment";
const card = "4111111111111111";
const number = "payments.v1.Card.number";

const refused: readonly { name: string; body: string; message: string }[] = [
  {
    name: "a number where text belongs",
    body: `{"paymentMethod":{"cc":{"number":${card}}}}`,
    message: `cannot decode field ${number} from JSON: expected string`,
  },
  {
    name: "text where a message belongs",
    body: `{"paymentMethod":"${card}"}`,
    message: "cannot decode message payments.v1.PaymentMethodInput from JSON",
  },
  {
    name: "a value that the enum lacks",
    body: `{"mode":"${card}"}`,
    message: "cannot decode enum payments.v1.PaymentMode from JSON",
  },
  {
    name: "a list where a message belongs",
    body: `{"paymentMethod":["${card}"]}`,
    message: "cannot decode message payments.v1.PaymentMethodInput from JSON",
  },
  {
    name: "text where a boolean belongs",
    body: `{"confirm":"${card}"}`,
    message:
      "cannot decode field payments.v1.CreatePaymentRequest.confirm from JSON: expected boolean",
  },
  {
    name: "a field that does not exist",
    body: '{"confrim":false}',
    message:
      'cannot decode message payments.v1.CreatePaymentRequest from JSON: key "confrim" is unknown',
  },
  {
    name: "a value in a field's place",
    body: `{"${card}":false}`,
    message: "cannot decode message payments.v1.CreatePaymentRequest from JSON",
  },
  {
    name: "text that is not JSON",
    body: `{"number":${card}x}`,
    message: "cannot decode message payments.v1.CreatePaymentRequest from JSON",
  },
  {
    name: "a field given twice",
    body: `{"amount":"1","amount":"${card}"}`,
    message: "cannot decode message payments.v1.CreatePaymentRequest from JSON",
  },
];

for (const { name, body, message } of refused) {
  test(`${name} is refused without a word of its value`, async () => {
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
      [{ reason: "INVALID_ARGUMENT", domain: "payments-gateway" }],
    );

    const envelope = Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), Buffer.from(body)]);
    const grpc = await grpcPost(started.port, "application/grpc+json", envelope);
    assert.equal(grpc["grpc-status"], "3");
    assert.equal(decodeURIComponent(String(grpc["grpc-message"])), message);
    const bytes = Buffer.from(String(grpc["grpc-status-details-bin"]), "base64");
    assert.match(bytes.toString("latin1"), /INVALID_ARGUMENT/);
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

test("a message over the limit is refused, also one that only grows when it is unpacked", async () => {
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

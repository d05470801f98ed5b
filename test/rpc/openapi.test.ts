import assert from "node:assert/strict";
import { connect } from "node:http2";
import { test } from "node:test";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { createConnectRouter } from "@connectrpc/connect";
import { Validator } from "@seriousme/openapi-schema-validator";
import { validate } from "../../src/core/validate.ts";
import { GatewayError } from "../../src/errors.ts";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { card, document, payment, schemaOf } from "./openapi-document.ts";
import { senders } from "./recorded-answers.ts";
import { start } from "./start.ts";

test("openapi.json is a valid document of OpenAPI 3.1", async () => {
  const validator = new Validator();
  assert.deepEqual(await validator.validate(structuredClone(document)), { valid: true });
  assert.equal(validator.version, "3.1");
});

test("openapi.json has every unary method and no stream, and a GET where the gateway has one", () => {
  const router = createConnectRouter();
  for (const service of services) router.service(service, {});
  const served = router.handlers
    .filter(({ method }) => method.methodKind === "unary")
    .map(({ requestPath, allowedMethods }) => [requestPath, [...allowedMethods].sort()]);
  const described = Object.entries(document.paths).map(([path, item]) => [
    path,
    Object.keys(item)
      .map((method) => method.toUpperCase())
      .sort(),
  ]);
  assert.deepEqual(Object.fromEntries(described), Object.fromEntries(served));
  const ids = Object.values(document.paths).flatMap((item) =>
    Object.values(item).map(({ operationId }) => operationId),
  );
  assert.equal(new Set(ids).size, ids.length);
});

const requests: Readonly<Record<string, JsonValue>> = {
  "a payment": payment,
  "an amount in words": { ...payment, amount: "1e3" },
  "an amount as a number": { ...payment, amount: 10.1 },
  "no amount": { ...payment, amount: "" },
  "no currency": { ...payment, currency: "" },
  "a mode that does not exist": { ...payment, mode: "PAYMENT_MODE_BARTER" },
  "an external id of 256 characters": { ...payment, externalId: "e".repeat(256) },
  "an external id of 255 characters": { ...payment, externalId: "e".repeat(255) },
  "a field that does not exist": { ...payment, confrim: false },
  "a wrong e-mail address": { ...payment, customer: { email: "jo" } },
  "a wrong IP address": { ...payment, customer: { ipAddress: "localhost" } },
  "a language that is not spoken": { ...payment, locale: "XX" },
  "a relative address": { ...payment, callbackUrl: "/callbacks" },
  "a card number in words": { ...payment, paymentMethod: { cc: { ...card, number: "4111-1" } } },
  "a short security code": { ...payment, paymentMethod: { cc: { ...card, cvv: "12" } } },
  "a thirteenth month": { ...payment, paymentMethod: { cc: { ...card, expMonth: 13 } } },
  "a card without a year": { ...payment, paymentMethod: { cc: { ...card, expYear: undefined } } },
  "two payment methods": { ...payment, paymentMethod: { cc: card, ccToken: { token: "t" } } },
  "too many products": {
    ...payment,
    products: Array.from({ length: 1_001 }, () => ({ name: "tea", price: "1", quantity: 1 })),
  },
} as never;

for (const [name, request] of Object.entries(requests)) {
  test(`openapi.json accepts or refuses ${name}, as the gateway does`, () => {
    const given = JSON.parse(JSON.stringify(request)) as JsonValue;
    const isValid = schemaOf("CreatePaymentRequest")(given);
    assert.equal(
      isValid,
      isAccepted(given),
      JSON.stringify(schemaOf("CreatePaymentRequest").errors),
    );
  });
}

function isAccepted(request: JsonValue): boolean {
  try {
    validate(CreatePaymentRequestSchema, fromJson(CreatePaymentRequestSchema, request));
    return true;
  } catch {
    return false;
  }
}

for (const [version, send] of Object.entries(senders)) {
  test(`the rpc listener serves openapi.json to everybody over HTTP/${version}`, async (t) => {
    const identify = async () => {
      throw new GatewayError("UNAUTHENTICATED", "who are you?");
    };
    await using started = await start({}, { identify });
    const session = connect(started.url);
    t.after(() => session.destroy());
    const ask = (method: string) =>
      send(started, session, { path: "/openapi.json", method, headers: {}, body: Buffer.alloc(0) });
    const answer = await ask("GET");
    assert.equal(answer.status, 200);
    assert.equal(answer.headers["content-type"], "application/json");
    assert.deepEqual(JSON.parse(answer.body.toString()), document);
    const head = await ask("HEAD");
    assert.deepEqual([head.status, head.body.length], [200, 0]);
    assert.equal(head.headers["content-length"], answer.headers["content-length"]);
    const post = await ask("POST");
    assert.deepEqual([post.status, post.headers.allow], [405, "GET, HEAD"]);
  });
}

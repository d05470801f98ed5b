import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { hideSecretsOf } from "../../src/upstream/echoed-secrets.ts";

test("an Apple Pay token is redacted both as plain text and as escaped JSON", () => {
  const token = '{"data":"secret-data","signature":"secret-signature"}';
  const hide = hideSecretsOf(
    CreatePaymentRequestSchema,
    create(CreatePaymentRequestSchema, {
      paymentMethod: { method: { case: "applePay", value: { token } } },
    }),
  );
  assert.equal(hide(`bad token ${token}`), "bad token [redacted]");
  assert.equal(hide(`bad body ${JSON.stringify({ token })}`), 'bad body {"token":"[redacted]"}');
});

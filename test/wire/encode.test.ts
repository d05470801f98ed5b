import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type ErrorType, UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { OperationSchema } from "../../src/gen/payments/v1/operation_pb.ts";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import {
  ConfirmPaymentRequestSchema,
  CreatePaymentRequestSchema,
  ResendCallbackRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { UpdateSubscriptionRequestSchema } from "../../src/gen/payments/v1/subscription_service_pb.ts";
import { encode } from "../../src/wire/wire.ts";

describe("encode", () => {
  const request = (init: MessageInitShape<typeof CreatePaymentRequestSchema>) =>
    encode(CreatePaymentRequestSchema, create(CreatePaymentRequestSchema, init));

  for (const text of [
    "1e3",
    "1,5",
    "+1",
    ".5",
    "5.",
    "0x1",
    " 1",
    "1\n",
    "١",
    '1,"confirm":true',
  ]) {
    it(`refuses the amount ${JSON.stringify(text)}, without quoting it`, () => {
      const refused = {
        name: "RangeError",
        message: "payments.v1.CreatePaymentRequest.amount does not hold a decimal number",
      };
      assert.throws(() => request({ amount: text }), refused);
    });
  }

  it("leaves out what is not set: zeros without presence, absent fields, empty lists", () => {
    assert.equal(request({}), "{}");
    assert.equal(request({ amount: "", currency: "", products: [] }), "{}");
    assert.equal(encode(PaymentSchema, create(PaymentSchema)), "{}");
    assert.equal(encode(PaymentSchema, create(PaymentSchema, { details: {} })), `{"details":{}}`);
  });

  it("writes zeros with presence", () => {
    const init = { confirm: false, description: "" };
    assert.equal(request(init), `{"confirm":false,"description":""}`);
    const fiscalization = { statusCode: 0 };
    assert.equal(
      encode(PaymentSchema, create(PaymentSchema, { details: { fiscalization } })),
      `{"details":{"fiscalization":{"status_code":0}}}`,
    );
  });

  it("leaves out an enum's unspecified value, with presence too", () => {
    const resend = create(ResendCallbackRequestSchema, { externalId: "a", operation: 0 });
    assert.equal(encode(ResendCallbackRequestSchema, resend), `{"external_id":"a"}`);
  });

  it("leaves out fields that are not part of the body", () => {
    const update = create(UpdateSubscriptionRequestSchema, {
      subscriptionId: "sub",
      customer: { authToken: "jwt" },
      autoRenew: true,
    });
    assert.equal(encode(UpdateSubscriptionRequestSchema, update), `{"auto_renew":true}`);
    const error = create(UpstreamErrorSchema, { code: "timeout", httpStatus: 503 });
    assert.equal(encode(UpstreamErrorSchema, error), `{"code":"timeout"}`);
  });

  it("escapes text as JSON does, lone surrogates and line separators included", () => {
    const texts = [
      '"',
      "\\",
      "\n\u0000\u001f",
      "😀 é",
      "\ud800",
      "a\udc00b",
      "\u2028",
      "</script>",
    ];
    for (const text of texts) {
      const written = encode(PaymentSchema, create(PaymentSchema, { id: text }));
      assert.equal(written, JSON.stringify({ id: text }));
    }
  });

  it("ignores properties that the message type does not have", () => {
    const confirm = { ...create(ConfirmPaymentRequestSchema, { externalId: "a" }), secret: "x" };
    assert.equal(encode(ConfirmPaymentRequestSchema, confirm), `{"external_id":"a"}`);
  });

  it("refuses values that JSON cannot hold, naming the field", () => {
    const nan = create(PaymentSchema, { details: { fiscalization: { statusCode: Number.NaN } } });
    const late = create(OperationSchema, { createdAt: { seconds: 253402300800n } });
    const type = create(UpstreamErrorSchema, { type: 99 as ErrorType });
    assert.throws(() => encode(PaymentSchema, nan), /Fiscalization\.status_code .* an integer/);
    assert.throws(() => encode(OperationSchema, late), /Operation\.created_at .* an instant/);
    assert.throws(() => encode(UpstreamErrorSchema, type), /UpstreamError\.type .* a known value/);
  });
});

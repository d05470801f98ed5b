import assert from "node:assert/strict";
import { test } from "node:test";
import { create, createRegistry, getOption } from "@bufbuild/protobuf";
import {
  ErrorType,
  file_payments_v1_error,
  UpstreamErrorSchema,
} from "../../src/gen/payments/v1/error_pb.ts";
import { file_payments_v1_operation } from "../../src/gen/payments/v1/operation_pb.ts";
import { wire } from "../../src/gen/payments/v1/options_pb.ts";
import { file_payments_v1_payment } from "../../src/gen/payments/v1/payment_pb.ts";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { file_payments_v1_payout } from "../../src/gen/payments/v1/payout_pb.ts";
import { file_payments_v1_wallet } from "../../src/gen/payments/v1/wallet_pb.ts";
import { hideSecretsOf } from "../../src/upstream/echoed-secrets.ts";
import { cleanError } from "../../src/upstream/error-object.ts";

const number = "4111111111111111";

test("every description and message field that the service sends is marked as free text", () => {
  const registry = createRegistry(
    file_payments_v1_payment,
    file_payments_v1_payout,
    file_payments_v1_operation,
    file_payments_v1_wallet,
    file_payments_v1_error,
  );
  // PayoutOrder comes from the caller; `cleanError` masks the texts of errors.
  const asked = new Set(["PayoutOrder.description", "UpstreamError.message"]);
  const unmarked: string[] = [];
  for (const type of registry) {
    if (type.kind !== "message") continue;
    for (const field of type.fields) {
      const name = `${type.name}.${field.name}`;
      if (!/description$|^message$/.test(field.name) || asked.has(name)) continue;
      if (!getOption(field, wire).freeText) unmarked.push(name);
    }
  }
  assert.deepEqual(unmarked, []);
});

test("no text or id of an error holds a card number or a secret of the request", () => {
  const error = create(UpstreamErrorSchema, {
    code: `code ${number}`,
    message: `message ${number} SECRET`,
    param: `param ${number}`,
    paymentId: `payment ${number} SECRET`,
    errorId: `error ${number} SECRET`,
    type: ErrorType.PAYMENT_ERROR,
  });
  const clean = cleanError(error, (told) => told.replaceAll("SECRET", "[redacted]"));
  assert.deepEqual(clean, {
    ...error,
    code: "code 411111******1111",
    message: "message 411111******1111 [redacted]",
    param: "param 411111******1111",
    paymentId: "payment 411111******1111 [redacted]",
    errorId: "error 411111******1111 [redacted]",
  });
});

test("ids of an error are not masked, even if their digits could be a card number", () => {
  for (const id of ["41111111-1111-1111-8aaa-bbbbbbbbbbbb", "pay-1", "10000042", ""]) {
    const error = create(UpstreamErrorSchema, { paymentId: id, errorId: id });
    const { paymentId, errorId } = cleanError(error, (told) => told);
    assert.deepEqual([paymentId, errorId], [id, id]);
  }
});

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

test("of a secret that holds another one nothing is left", () => {
  const login = ["password", "password-of-the-shop"];
  const hide = hideSecretsOf(CreatePaymentRequestSchema, create(CreatePaymentRequestSchema), login);
  assert.equal(hide("bad password-of-the-shop"), "bad [redacted]");
});

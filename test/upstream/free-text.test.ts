import assert from "node:assert/strict";
import { test } from "node:test";
import { create, createRegistry, getOption } from "@bufbuild/protobuf";
import {
  ErrorType,
  file_payments_v1_error,
  UpstreamErrorSchema,
} from "../../src/gen/payments/v1/error_pb.ts";
import {
  file_payments_v1_operation,
  OperationSchema,
} from "../../src/gen/payments/v1/operation_pb.ts";
import { wire } from "../../src/gen/payments/v1/options_pb.ts";
import { file_payments_v1_payment, PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { file_payments_v1_payout, PayoutSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import {
  DeactivateSubscriptionResponseSchema,
  UpdateSubscriptionResponseSchema,
} from "../../src/gen/payments/v1/subscription_service_pb.ts";
import { file_payments_v1_wallet, WalletItemSchema } from "../../src/gen/payments/v1/wallet_pb.ts";
import { cleanError } from "../../src/upstream/error-object.ts";
import { decode, encode } from "../../src/wire/wire.ts";

const text = "paid with 4111 1111 1111 1111, or 5555555555554444";
const masked = "paid with 4111 11** **** 1111, or 555555******4444";
const number = "4111111111111111";

test("card numbers in the free texts of answers and callbacks are masked", () => {
  const details = { description: text, status_description: text };
  const payment = decode(
    PaymentSchema,
    JSON.stringify({ details: { ...details, fiscalization: { status_description: text } } }),
  );
  assert.equal(payment.details?.description, masked);
  assert.equal(payment.details?.statusDescription, masked);
  assert.equal(payment.details?.fiscalization?.statusDescription, masked);
  const payout = decode(
    PayoutSchema,
    JSON.stringify({ description: text, status_code_description: text }),
  );
  assert.deepEqual([payout.description, payout.statusCodeDescription], [masked, masked]);
  const operation = decode(OperationSchema, JSON.stringify({ status_description: text }));
  assert.equal(operation.statusDescription, masked);
  assert.equal(decode(WalletItemSchema, JSON.stringify({ name: text })).name, masked);
  for (const schema of [UpdateSubscriptionResponseSchema, DeactivateSubscriptionResponseSchema]) {
    assert.equal(decode(schema, JSON.stringify({ message: text })).message, masked);
  }
});

test("a free text that arrives as a number is masked, and an object in its place is a fault", () => {
  assert.equal(decode(PayoutSchema, `{"description": ${number}}`).description, "411111******1111");
  const faults: string[] = [];
  const onFault = ({ path }: { path: string }) => faults.push(path);
  const { description } = decode(PayoutSchema, '{"description": {}}', { onFault });
  assert.deepEqual([description, faults], [undefined, ["description"]]);
});

test("ids, amounts, masks and the merchant's own payload are not masked", () => {
  const json = {
    external_id: number,
    id: number,
    details: { amount: number, payment_id: number, payload: number, rrn: number },
    payment_method: { cc_token: { mask: "411111******1111", token: number } },
  };
  const payment = decode(PaymentSchema, JSON.stringify(json));
  assert.deepEqual(JSON.parse(encode(PaymentSchema, payment)), json);
  const payout = decode(PayoutSchema, `{"original_amount": ${number}, "fc_id": 4111}`);
  assert.deepEqual([payout.originalAmount, payout.fcId], [number, 4111n]);
});

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
  const clean = cleanError(error, 400, (told) => told.replaceAll("SECRET", "[redacted]"));
  assert.deepEqual(clean, {
    ...error,
    httpStatus: 400,
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
    const { paymentId, errorId } = cleanError(error, 400, (told) => told);
    assert.deepEqual([paymentId, errorId], [id, id]);
  }
});

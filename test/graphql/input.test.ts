import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { RequestPayoutRequestSchema } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { FindWalletItemsRequestSchema } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import { toInputPath } from "../../src/graphql/schema/input.ts";
import { answeredPayment } from "../core/answers.ts";
import { serve } from "./serve.ts";

const decimals = fc.stringMatching(/^-?\d{1,9}(\.\d{1,6})?$/);

test("a decimal keeps its text to the core and back, as a variable and in the query", async (t) => {
  const gateway = await serve(t, {
    confirmPayment: async ({ amount }) =>
      answeredPayment({ details: amount === undefined ? {} : { amount } }),
  });
  const selection = "{ ... on Payment { details { amount } } }";
  await fc.assert(
    fc.asyncProperty(decimals, async (amount) => {
      const byVariable = await gateway.run(
        `mutation($a: Decimal) { confirmPayment(input: {externalId: "e", amount: $a}) ${selection} }`,
        { a: amount },
      );
      assert.equal(byVariable.data.confirmPayment.details.amount, amount);
      const inQuery = await gateway.run(
        `mutation { confirmPayment(input: {externalId: "e", amount: "${amount}"}) ${selection} }`,
      );
      assert.equal(inQuery.data.confirmPayment.details.amount, amount);
    }),
    { numRuns: 100 },
  );
  for (const amount of ["10.10", "0.1", "99999999999.99", "-0", "1e3", "123456789012345678"]) {
    const { data } = await gateway.run(
      `mutation { confirmPayment(input: {externalId: "e", amount: ${amount}}) ${selection} }`,
    );
    assert.equal(data.confirmPayment.details.amount, amount);
  }
});

test("a decimal variable that is a JSON number is accepted only if it is a safe integer", async (t) => {
  const gateway = await serve(t, {
    confirmPayment: async ({ amount }) => answeredPayment({ id: amount ?? "" }),
  });
  const run = (a: unknown) =>
    gateway.run(
      `mutation($a: Decimal) { confirmPayment(input: {externalId: "e", amount: $a}) { ... on Payment { id } } }`,
      { a },
    );
  assert.equal((await run(10)).data.confirmPayment.id, "10");
  for (const amount of [10.1, 2 ** 53, true, ["1"], { a: "1" }]) {
    assert.equal((await run(amount)).errors[0].extensions.code, "BAD_USER_INPUT");
  }
});

test("a field path of a proto request is translated to the path in its GraphQL input", () => {
  const paths: [Parameters<typeof toInputPath>[0], string, string][] = [
    [CreatePaymentRequestSchema, "amount", "amount"],
    [CreatePaymentRequestSchema, "payment_method.cc.exp_month", "paymentMethod.method.cc.expMonth"],
    [CreatePaymentRequestSchema, "payment_method.method", "paymentMethod.method"],
    [CreatePaymentRequestSchema, "payment_method.type", "paymentMethod.type"],
    [CreatePaymentRequestSchema, "products[12].net_amount", "products[12].netAmount"],
    [
      CreatePaymentRequestSchema,
      "recipient.payment_method.cc_number.number",
      "recipient.paymentMethod.method.ccNumber.number",
    ],
    [RequestPayoutRequestSchema, "order.original_amount", "order.originalAmount"],
    [
      RequestPayoutRequestSchema,
      "recipient.card.card_data.number",
      "recipient.card.cardData.number",
    ],
    [FindWalletItemsRequestSchema, "customer.auth_token", "customer.authToken"],
    [FindWalletItemsRequestSchema, "customer.external_id", "customer.externalId"],
    // Not a field: the path of an error about an invalid Idempotency-Key, for example.
    [CreatePaymentRequestSchema, "idempotency-key", "idempotency-key"],
    [CreatePaymentRequestSchema, "", ""],
  ];
  for (const [desc, path, expected] of paths) assert.equal(toInputPath(desc, path), expected);
});

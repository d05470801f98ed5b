import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { PayoutSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import {
  GetPayoutResponseSchema,
  RequestPayoutRequestSchema,
} from "../../src/gen/payments/v1/payout_service_pb.ts";
import { answeredPayout } from "../core/answers.ts";
import { requestOf } from "./request-of.ts";
import { serve } from "./serve.ts";

const payoutInit: MessageInitShape<typeof PayoutSchema> = {
  currency: "UAH",
  description: "Prize",
  externalId: "payout-1",
  fcId: 42n,
  originalAmount: "100.00",
  partnerKeyId: "key-1",
  payerAccount: { entityId: "entity-1" },
  payerAmount: "101.00",
  payerOuterFee: "1.00",
  paymentType: "payout",
  payoutType: "card",
  recipientUser: {
    email: "r@example.com",
    firstName: "Rita",
    lastName: "Rey",
    middleName: "M",
    phone: "+1",
    rid: "rid",
    ipn: "ipn",
    externalId: "user-1",
  },
  status: "pending",
  statusCode: "pending",
  statusCodeDescription: "In progress",
  transactionId: "f47ac10b-58cc-4372-a567-0e02b2c3d479",
  recipientAmount: "99.00",
};
const payoutFields = `currency description externalId fcId originalAmount partnerKeyId
  payerAccount { entityId } payerAmount payerOuterFee paymentType payoutType
  recipientUser { email firstName lastName middleName phone rid ipn externalId }
  status statusCode statusCodeDescription transactionId recipientAmount`;
const payoutJson = { ...payoutInit, fcId: 42 };

test("payout and requestPayout show every field of a payout", async (t) => {
  const gateway = await serve(t, {
    getPayout: async () => create(GetPayoutResponseSchema, { payout: payoutInit }),
  });
  const told = "outcomeUnknown needsOperator";
  const query = `{ payout(externalId: "payout-1") { ${payoutFields} ${told} } }`;
  assert.deepEqual(await gateway.run(query), {
    data: { payout: { ...payoutJson, outcomeUnknown: false, needsOperator: false } },
  });

  const request = await serve(t, { requestPayout: async () => answeredPayout(payoutInit) });
  const answer = await request.run(`mutation { requestPayout(input: {
    order: {currency: "UAH", description: "Prize", externalId: "payout-1", originalAmount: "100.00"}
    payer: {entityId: "entity-1"}
    recipient: {card: {firstName: "Rita", lastName: "Rey", cardData: {number: "4111111111111111"}}}
    payoutType: "card"
  }) { ... on Payout { ${payoutFields} } } }`);
  assert.deepEqual(answer, { data: { requestPayout: payoutJson } });
  assert.deepEqual(requestOf(request, RequestPayoutRequestSchema), {
    order: {
      currency: "UAH",
      description: "Prize",
      external_id: "payout-1",
      original_amount: "100.00",
    },
    payer: { entity_id: "entity-1" },
    recipient: {
      card: {
        first_name: "Rita",
        last_name: "Rey",
        card_data: { number: "4111111111111111" },
      },
    },
    payout_type: "card",
  });
});

test("a payout is not null if all that is known of it is a call without an answer", async (t) => {
  const gateway = await serve(t, {
    getPayout: async () =>
      create(GetPayoutResponseSchema, { outcomeUnknown: true, needsOperator: true }),
  });
  const answer = await gateway.run(
    `{ payout(externalId: "payout-1") { externalId status outcomeUnknown needsOperator } }`,
  );
  const payout = {
    externalId: "payout-1",
    status: null,
    outcomeUnknown: true,
    needsOperator: true,
  };
  assert.deepEqual(answer, { data: { payout } });
});

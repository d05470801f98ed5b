import { PayoutSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import { add, onePercent } from "../ledger/money.ts";
import type { PayoutRecord } from "../ledger/records.ts";
import { bodyOf } from "./http.ts";
import { describeStatus } from "./payment-view.ts";

/** "Payout transaction", the response to a call. */
export function payoutBody(payout: PayoutRecord): string {
  return bodyOf(PayoutSchema, {
    ...sharedFields(payout),
    description: payout.description,
    payerAccount: { entityId: payout.entityId },
    recipientUser: payout.recipient,
  });
}

/** The body of a payout's callback: with `recipient_amount`, but without payer and recipient. */
export function payoutCallbackBody(payout: PayoutRecord): string {
  return bodyOf(PayoutSchema, { ...sharedFields(payout), recipientAmount: payout.originalAmount });
}

function sharedFields(payout: PayoutRecord) {
  const fee = onePercent(payout.originalAmount);
  return {
    transactionId: payout.transactionId,
    partnerKeyId: "sandbox",
    externalId: payout.externalId,
    fcId: BigInt(payout.fcId),
    currency: payout.currency,
    originalAmount: payout.originalAmount,
    payerAmount: add(payout.originalAmount, fee),
    payerOuterFee: fee,
    paymentType: "payout",
    payoutType: payout.payoutType,
    status: payout.status,
    statusCode: payout.statusCode,
    statusCodeDescription: describeStatus(payout.statusCode),
  };
}

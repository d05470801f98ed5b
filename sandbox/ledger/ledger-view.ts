import type { Ledger } from "./ledger.ts";
import type { PaymentRecord, PayoutRecord } from "./records.ts";

/** The content of the sandbox's ledger, without card numbers and tokens. */
export function ledgerView(ledger: Ledger) {
  return {
    payments: Array.from(ledger.payments(), paymentView),
    payouts: Array.from(ledger.payouts(), payoutView),
  };
}

function paymentView(payment: PaymentRecord) {
  return {
    payment_id: payment.paymentId,
    external_id: payment.externalId,
    amount: payment.amount,
    currency: payment.currency,
    ...(payment.card && { card_mask: payment.card.mask }),
    ...(payment.waitingFor && { waiting_for: payment.waitingFor }),
    operations: payment.operations.map((operation) => ({
      operation_id: operation.operationId,
      operation: operation.kind,
      amount: operation.amount,
      status: operation.status,
      status_code: operation.statusCode,
      scenario: operation.scenario.name,
      created_at: operation.createdAt.toISOString(),
    })),
  };
}

function payoutView(payout: PayoutRecord) {
  return {
    transaction_id: payout.transactionId,
    external_id: payout.externalId,
    amount: payout.originalAmount,
    currency: payout.currency,
    status: payout.status,
    status_code: payout.statusCode,
  };
}

import type { Ledger } from "./ledger.ts";
import type { PaymentRecord, PayoutRecord } from "./records.ts";

/** The content of the sandbox's ledger, without card numbers and tokens. */
export interface LedgerView {
  readonly payments: readonly PaymentView[];
  readonly payouts: readonly PayoutView[];
}

export interface PaymentView {
  readonly payment_id: string;
  readonly external_id: string;
  readonly amount: string;
  readonly currency: string;
  readonly card_mask?: string;
  readonly waiting_for?: string;
  readonly operations: readonly OperationView[];
}

export interface OperationView {
  readonly operation_id: string;
  readonly operation: string;
  readonly amount: string;
  readonly status: string;
  readonly status_code: string;
  readonly scenario: string;
  readonly created_at: string;
}

export interface PayoutView {
  readonly transaction_id: string;
  readonly external_id: string;
  readonly amount: string;
  readonly currency: string;
  readonly status: string;
  readonly status_code: string;
}

export function ledgerView(ledger: Ledger): LedgerView {
  return {
    payments: Array.from(ledger.payments(), paymentView),
    payouts: Array.from(ledger.payouts(), payoutView),
  };
}

function paymentView(payment: PaymentRecord): PaymentView {
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

function payoutView(payout: PayoutRecord): PayoutView {
  return {
    transaction_id: payout.transactionId,
    external_id: payout.externalId,
    amount: payout.originalAmount,
    currency: payout.currency,
    status: payout.status,
    status_code: payout.statusCode,
  };
}

import { ApiError } from "../api/api-error.ts";
import { type CardVault, forgetOldest } from "./cards.ts";
import type {
  OperationKind,
  PaymentOperationRecord,
  PaymentRecord,
  PayoutRecord,
} from "./records.ts";
import type { SavedState } from "./saved-state.ts";

export type Ledger = ReturnType<typeof createLedger>;

/**
 * All payments and payouts of one run, in the order of creation. Keeps at most `maxRecords`
 * payments and as many payouts; the oldest are removed.
 */
export function createLedger(maxRecords: number, vault: CardVault, saved: SavedState) {
  const payments = new Map<string, PaymentRecord>();
  const payouts = new Map<string, PayoutRecord>();
  for (const payment of saved.all<PaymentRecord>("payment")) {
    if (payment.card) payment.card = vault.restored(payment.card);
    payments.set(payment.paymentId, payment);
  }
  for (const payout of saved.all<PayoutRecord>("payout")) payouts.set(payout.externalId, payout);
  const all = () => [...payments.values()];
  /** Saves what has changed in a payment. */
  const changed = (payment: PaymentRecord) => saved.put("payment", payment.paymentId, payment);
  /** Saves what has changed in a payout. */
  const changedPayout = (payout: PayoutRecord) => saved.put("payout", payout.externalId, payout);

  return {
    addPayment(payment: PaymentRecord): void {
      changed(payment);
      payments.set(payment.paymentId, payment);
      for (const [old] of forgetOldest(payments, maxRecords)) saved.remove("payment", old);
    },
    changed,
    payment: (paymentId: string) => payments.get(paymentId),
    /** The payment whose 3DS or checkout page has this token in its URL. */
    paymentByPage: (token: string) => all().find(({ pageToken }) => pageToken === token),
    paymentByRecurrent: (id: string) => all().find(({ recurrentId }) => recurrentId === id),
    /** All attempts with an external id, oldest first. */
    attempts: (id: string): readonly PaymentRecord[] =>
      all().filter(({ externalId }) => externalId === id),
    payments: () => payments.values(),
    /** Whether any payment was made for this customer (the merchant's id of the customer). */
    knowsCustomer: (id: string) => all().some(({ customer }) => customer.externalId === id),

    addPayout(payout: PayoutRecord): void {
      changedPayout(payout);
      payouts.set(payout.externalId, payout);
      for (const [old] of forgetOldest(payouts, maxRecords)) saved.remove("payout", old);
    },
    changedPayout,
    payout: (externalId: string) => payouts.get(externalId),
    payouts: () => payouts.values(),
  };
}

/** The operation that charges the card: always the first, of kind payment or recurrent. */
export function primaryOperation(payment: PaymentRecord): PaymentOperationRecord {
  return payment.operations[0];
}

export function succeeded(payment: PaymentRecord): boolean {
  return primaryOperation(payment).status === "success";
}

/** Whether an operation has not ended yet. */
export function isOpen({ status }: PaymentOperationRecord): boolean {
  return status === "init" || status === "pending";
}

/** Whether the customer has to act before the operation goes on. */
export function waitsForCustomer(
  payment: PaymentRecord,
  operation: PaymentOperationRecord,
): boolean {
  return payment.waitingFor !== undefined && operation === primaryOperation(payment);
}

/** Whether an operation of this kind succeeded or is under way. */
export function hasLive(payment: PaymentRecord, kind: OperationKind): boolean {
  return payment.operations.some((done) => done.kind === kind && done.status !== "failure");
}

/** All attempts with an external id. @throws ApiError when there is none. */
export function attemptsOf(ledger: Ledger, externalId: string): readonly PaymentRecord[] {
  const attempts = ledger.attempts(externalId);
  if (attempts.length > 0) return attempts;
  throw new ApiError("transaction_not_found", { param: "external_id" });
}

/** "At most one success payment per external_id within a single login." @throws ApiError */
export function refuseIfPaid(ledger: Ledger, externalId: string): void {
  const paid = ledger.attempts(externalId).find(succeeded);
  if (!paid) return;
  const { paymentId } = paid;
  throw new ApiError("transaction_already_paid", { param: "external_id", paymentId });
}

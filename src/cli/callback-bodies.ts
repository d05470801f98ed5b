/** What a made-up callback is about. */
export interface BodyValues {
  readonly externalId: string;
  /** payment_id or transaction_id. */
  readonly subjectId: string;
  readonly operationId: string;
  /** Decimal text. */
  readonly amount: string;
  readonly currency: string;
  readonly at: Date;
}

type Status = "init" | "pending" | "success" | "failure";

/** "Payment transaction data" (spec, Resources) as the payments service might send it. */
export function paymentCallback(
  { externalId, subjectId, operationId, amount, currency, at }: BodyValues,
  told: { readonly operation: string; readonly status: Status; readonly code: string },
): object {
  const instant = at.toISOString();
  const ended = told.status === "success" || told.status === "failure";
  return {
    action: null,
    action_required: false,
    details: {
      amount,
      billing_order_id: `bill-${subjectId}`,
      created_at: instant,
      currency,
      description: "Made by payments-gateway trigger",
      payment_id: subjectId,
      ...(ended ? { processed_at: instant } : {}),
      status: told.status,
      status_code: told.code,
      status_description: wordsOf(told.code),
      transaction_id: `txn-${subjectId}`,
      operation_id: operationId,
      ...(told.status === "success" ? { rrn: "012345678901", auth_code: "A1B2C3" } : {}),
      terminal_name: "trigger",
      bank_name: "Example Bank",
      method: "purchase",
    },
    external_id: externalId,
    id: `id-${subjectId}`,
    project_id: "trigger",
    is_success: told.status === "success",
    payment_method: { type: "cc_number" },
    customer: { email: "jo@example.com", first_name: "Jo", last_name: "Example" },
    operation: told.operation,
  };
}

/** "Payout callback body" (spec, Resources). */
export function payoutCallback(
  { externalId, subjectId, amount, currency }: BodyValues,
  told: { readonly status: Status; readonly code: string },
): object {
  return {
    transaction_id: subjectId,
    partner_key_id: "trigger",
    external_id: externalId,
    fc_id: 1,
    currency,
    original_amount: amount,
    payer_amount: amount,
    payer_outer_fee: "0.00",
    recipient_amount: amount,
    payment_type: "payout",
    payout_type: "card",
    status: told.status,
    status_code: told.code,
    status_code_description: wordsOf(told.code),
  };
}

function wordsOf(code: string): string {
  const words = code.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

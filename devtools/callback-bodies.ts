/** The payment or payout that a made-up callback reports. */
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

/** `expired` is one that the gateway does not know. */
type Status = "init" | "pending" | "success" | "failure" | "expired";

/** "Payment transaction data" (spec, Resources) as the payments service might send it. */
export function paymentCallback(
  { externalId, subjectId, operationId, amount, currency, at }: BodyValues,
  outcome: { readonly operation: string; readonly status: Status; readonly code: string },
): object {
  const instant = at.toISOString();
  const ended = outcome.status === "success" || outcome.status === "failure";
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
      status: outcome.status,
      status_code: outcome.code,
      status_description: wordsOf(outcome.code),
      transaction_id: `txn-${subjectId}`,
      operation_id: operationId,
      ...(outcome.status === "success" ? { rrn: "012345678901", auth_code: "A1B2C3" } : {}),
      terminal_name: "trigger",
      bank_name: "Example Bank",
      method: "purchase",
    },
    external_id: externalId,
    id: `id-${subjectId}`,
    project_id: "trigger",
    is_success: outcome.status === "success",
    payment_method: { type: "cc_number" },
    customer: { email: "jo@example.com", first_name: "Jo", last_name: "Example" },
    operation: outcome.operation,
  };
}

/** "Payout callback body" (spec, Resources). */
export function payoutCallback(
  { externalId, subjectId, amount, currency }: BodyValues,
  outcome: { readonly status: Status; readonly code: string },
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
    status: outcome.status,
    status_code: outcome.code,
    status_code_description: wordsOf(outcome.code),
  };
}

function wordsOf(code: string): string {
  const words = code.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

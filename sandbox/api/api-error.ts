import { ErrorType } from "../../src/gen/payments/v1/error_pb.ts";

const {
  INVALID_REQUEST_ERROR: invalidRequest,
  PAYMENT_METHOD_ERROR: paymentMethod,
  PAYMENT_SETTINGS_ERROR: paymentSettings,
  PAYMENT_ERROR: payment,
  API_ERROR: api,
  CUSTOMER_ERROR: customer,
} = ErrorType;

/**
 * The codes that the sandbox answers with: HTTP status, error type, text. The spec names codes and
 * types, but not which type a code has, and no statuses: this table is the sandbox's choice.
 */
const errors = {
  authorization_failed: [401, invalidRequest, "Authorization failed"],
  invalid_request_body: [400, invalidRequest, "Invalid request"],
  wrong_amount: [400, invalidRequest, "Wrong amount"],
  invalid_currency: [400, invalidRequest, "Invalid currency"],
  incorrect_refund_sum_or_currency: [400, invalidRequest, "Incorrect refund sum or currency"],
  confirm_amount_cannot_be_more_than_the_transaction_amount: [
    400,
    invalidRequest,
    "Confirm amount cannot be more than the transaction amount",
  ],
  missed_payout_method_data: [400, invalidRequest, "Payout method data is missing"],
  action_not_allowed: [403, payment, "Action is not allowed"],
  action_already_done: [409, payment, "Action is already done"],
  transaction_already_paid: [409, payment, "Transaction is already paid"],
  transaction_not_found: [404, payment, "Transaction is not found"],
  transaction_success_primary_not_found: [404, payment, "Successful primary payment is not found"],
  transaction_is_not_recurring: [400, payment, "Transaction is not recurring"],
  transaction_declined: [402, payment, "Transaction is declined"],
  transaction_is_canceled_by_payer: [402, payment, "Transaction is canceled by payer"],
  insufficient_funds: [402, payment, "Insufficient funds"],
  anti_fraud_check: [402, payment, "Refused by the anti-fraud check"],
  card_expired: [402, paymentMethod, "Card is expired"],
  wrong_cvv: [402, paymentMethod, "Wrong CVV"],
  wrong_cavv: [402, paymentMethod, "3DS authentication failed"],
  wrong_card_number: [400, paymentMethod, "Wrong card number"],
  invalid_card_token: [400, paymentMethod, "Invalid card token"],
  card_verification_required: [400, paymentMethod, "Card verification is required"],
  card_not_found: [404, paymentMethod, "Card is not found"],
  payment_method_not_found: [404, paymentMethod, "Payment method is not found"],
  customer_id_not_passed: [400, customer, "Customer id is not passed"],
  customer_profile_not_found: [404, customer, "Customer profile is not found"],
  customer_auth_token_expired_or_invalid: [
    401,
    customer,
    "Customer access token is expired or invalid",
  ],
  subscription_not_found: [404, customer, "Subscription is not found"],
  subscription_not_active: [409, customer, "Subscription is not active"],
  subscription_auto_renew_locked: [409, paymentSettings, "Auto-renewal is locked"],
  too_many_requests: [429, api, "Too many requests"],
  internal_error: [500, api, "Internal error"],
} as const satisfies Record<string, readonly [number, ErrorType, string]>;

export type ApiErrorCode = keyof typeof errors;

export interface ApiErrorDetails {
  /** Text instead of the code's own. It never repeats a refused value. */
  readonly message?: string;
  /** Path of the offending parameter, as in `payment_method.cc.number`. */
  readonly param?: string;
  readonly paymentId?: string;
  /** HTTP status instead of the code's own. */
  readonly status?: number;
}

/** An error that is sent to the merchant as an Error object (spec, Errors part). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: ApiErrorCode;
  readonly type: ErrorType;
  readonly status: number;
  readonly details: ApiErrorDetails;

  constructor(code: ApiErrorCode, details: ApiErrorDetails = {}) {
    super(details.message ?? describe(code));
    this.code = code;
    this.type = errors[code][1];
    this.status = details.status ?? errors[code][0];
    this.details = details;
  }
}

export function isApiErrorCode(code: string): code is ApiErrorCode {
  return Object.hasOwn(errors, code);
}

/** The human-readable form of a code. */
export function describe(code: ApiErrorCode): string {
  return errors[code][2];
}

/** An `invalid_request_body` about one parameter. */
export function invalid(param: string, message: string): ApiError {
  return new ApiError("invalid_request_body", { param, message: `${param} ${message}` });
}

import type { ErrorCode } from "../errors.ts";
import { ErrorType, type UpstreamError } from "../gen/payments/v1/error_pb.ts";

/**
 * When the same call may be tried again:
 * - `no`: it would fail again as it is;
 * - `newToken`: with a new customer token;
 * - `otherCard`: with another card, or later;
 * - `after`: after the pause that the error names;
 * - `yes`: at any time;
 * - `lookUp`: only after its outcome was looked up.
 */
export type Retry = "no" | "newToken" | "otherCard" | "after" | "yes" | "lookUp";

/** What an error of the payments service means to a caller. */
export interface Reading {
  readonly code: ErrorCode;
  readonly retry: Retry;
  /** The error leaves open whether money moved: a call that moves money is then UNKNOWN. */
  readonly leavesOpen?: true;
  /** The merchant's own credentials were refused. */
  readonly credentials?: true;
  /** The refusal is not about the call: nothing of it was attempted. */
  readonly notAttempted?: true;
  /** The reading instead if the request carried a customer's own credentials. */
  readonly toCustomer?: Reading;
  /** The reading instead for a call that moves no money. */
  readonly withoutMoney?: Reading;
}

const badInput: Reading = { code: "INVALID_ARGUMENT", retry: "no" };
const unknownThing: Reading = { code: "NOT_FOUND", retry: "no" };
const alreadyDone: Reading = { code: "ALREADY_EXISTS", retry: "no" };
const wrongState: Reading = { code: "FAILED_PRECONDITION", retry: "no" };
const notAllowed: Reading = { code: "PERMISSION_DENIED", retry: "no" };
const customerToken: Reading = { code: "UNAUTHENTICATED", retry: "newToken" };
const credentials: Reading = {
  ...{ code: "INTERNAL", retry: "no" },
  ...{ credentials: true, notAttempted: true },
};
const declined: Reading = { code: "FAILED_PRECONDITION", retry: "otherCard" };
const tooMany: Reading = { code: "RESOURCE_EXHAUSTED", retry: "after", notAttempted: true };
const failed: Reading = { code: "UNAVAILABLE", retry: "yes", leavesOpen: true };
// The codes of `underWay` and `wentWell` contradict an Error object: they mean a payment that is in
// progress or succeeded. Reporting it as failed would invite a second payment.
const underWay: Reading = { code: "FAILED_PRECONDITION", retry: "lookUp", leavesOpen: true };
// For invalid_token. Card tokens have codes of their own (invalid_card_token,
// token_does_not_exist): with a customer's credentials it means the customer's token, else the
// payment method.
const declinedToken: Reading = { ...declined, toCustomer: customerToken };
// For failed_to_load_wallet: it declines a payment, but a read of the wallet may soon succeed.
const declinedWallet: Reading = { ...declined, withoutMoney: failed };
const wentWell: Reading = { code: "ALREADY_EXISTS", retry: "lookUp", leavesOpen: true };

/**
 * What each code of the spec means: the 116 of its Errors part and the status codes of operation
 * info. The spec gives only the names; the meanings are the gateway's interpretation.
 */
const readings = [
  [
    badInput,
    `invalid_request_body invalid_data invalid_currency wrong_amount invalid_transaction_amount
    confirm_amount_cannot_be_more_than_the_transaction_amount incorrect_refund_sum_or_currency
    currency_rate_not_found invalid_transaction_type customer_id_not_passed sender_info_required
    receiver_info_error invalid_recipient_name invalid_phone_number missed_payout_method_data
    invalid_card_data invalid_card_token wrong_card_number wrong_account_number cvv_is_required
    card_bin_not_found wrong_cooperation_type wrong_payment_count wrong_installment_period`,
  ],
  [
    unknownThing,
    `transaction_not_found transaction_success_primary_not_found payment_method_not_found
    card_not_found token_does_not_exist customer_profile_not_found user_not_found plan_not_found
    subscription_not_found no_discount_found`,
  ],
  [
    alreadyDone,
    `transaction_already_paid action_already_done payment_method_already_confirmed
    subscription_already_exists`,
  ],
  [
    wrongState,
    `confirm_required 3ds_required card_verification_required
    transaction_is_not_recurring invalid_transaction_status payment_was_refunded order_canceled order_expired completion_limit_reached store_is_not_active
    plan_not_active plan_project_missing subscription_auto_renew_locked subscription_not_active
    simultaneous_open_orders_not_supported_by_bank`,
  ],
  // Only the merchant can change these, with the service: no other card or request helps.
  [
    notAllowed,
    `access_not_allowed access_error action_not_allowed payment_method_not_allowed
    preauth_not_allowed recurring_transactions_not_allowed restricted_ip store_is_blocked
    payment_settings_not_found wallet_not_configured public_key_not_found
    terminal_not_found fee_not_found`,
  ],
  // customer_auth_* are about the customer's authentication.
  [customerToken, "customer_auth_not_found customer_auth_token_expired_or_invalid"],
  [declinedToken, "invalid_token"],
  [declinedWallet, "failed_to_load_wallet"],
  // authorization_failed is the first code in the spec's list, among those about the request as
  // such: the gateway's Basic authentication failed. authorization_error is listed among the
  // outcomes of transactions, so it means that the card was refused. access_not_allowed and
  // access_error are about rights, which presume accepted credentials (but see `readError` for HTTP
  // 401).
  [credentials, "authorization_failed"],
  // What is not supported here is the card, its country or the customer's bank: another one may be.
  // pin_tries_exceeded is the card's limit: waiting does not help, and RESOURCE_EXHAUSTED would
  // make clients repeat the call automatically.
  [
    declined,
    `transaction_declined transaction_rejected transaction_cannot_be_processed authorization_error
    failed_to_create_transaction failed_to_finish_transaction insufficient_funds
    insufficient_funds_for_refund transaction_amount_limit transaction_limit_exceeded
    daily_card_usage_limit_reached card_branch_daily_limit_reached pin_tries_exceeded
    card_has_constraints card_branch_is_blocked card_expired card_is_lost_or_stolen payment_card_has_invalid_status
    anti_fraud_check finmon_validation_failed 3ds_not_supported wrong_cavv wrong_cvv wrong_pin
    wrong_authorization_code wrong_sms_password invalid_verification_code failed_to_verify_card
    card_not_supported card_type_is_not_supported payment_system_not_supported
    country_not_supported bank_is_not_supported transaction_not_supported
    failed_to_send_sms confirmation_timeout session_expired transaction_is_canceled_by_payer
    banking_application_is_not_installed`,
  ],
  [tooMany, "too_many_requests reached_the_limit_of_attempts_for_ip"],
  [failed, "internal_error request_failed timeout"],
  // The spec lists confirmation_required as a pending operation's status code.
  [
    underWay,
    `pending confirmation_required waiting_for_complete waiting_for_redirect waiting_for_verification
    additional_information_is_pending transaction_created test_transaction`,
  ],
  [
    wentWell,
    `transaction_successful refund_successful contract_was_signed_on_client_side
    subscription_successful unsubscribed_successfully`,
  ],
] as const satisfies ReadonlyArray<readonly [Reading, string]>;

/** A code that the spec lists. */
export type ListedCode = WordsOf<(typeof readings)[number][1]>;

/** The words of a text: between two spaces stands a word, nothing, or a word and a line's end. */
type WordsOf<Text extends string, Found = never> = Text extends `${infer Word} ${infer Rest}`
  ? WordsOf<Rest, Found | WithoutEnd<Word>>
  : Exclude<Found | WithoutEnd<Text>, "">;
type WithoutEnd<Word extends string> = Word extends `${infer Start}\n` ? Start : Word;

const byCode: ReadonlyMap<string, Reading> = new Map(
  readings.flatMap(([reading, codes]) =>
    codes.split(/\s+/).map((code) => [code, reading] as const),
  ),
);

/** Every code that the spec lists. */
export const listedCodes: readonly string[] = [...byCode.keys()];

/** Whether an Error object says that the external_id already has a successful payment. */
export function saysAlreadyPaid({ code }: Pick<UpstreamError, "code">): boolean {
  return code === "transaction_already_paid";
}

/** Whether an Error object says that the service tried the payment and it failed. */
export function saysDeclined(error: UpstreamError): boolean {
  return readError({ ...error, asCustomer: false, movesMoney: true }).retry === "otherCard";
}

/** Whether an Error object says that the service knows no such payment or payout. */
export function saysNotFound({ code }: Pick<UpstreamError, "code">): boolean {
  return code === "transaction_not_found";
}

/** Whether an Error object confirms a change of a subscription: with a 2xx status it went well. */
export function saysDone({ code }: Pick<UpstreamError, "code">): boolean {
  return code === "subscription_successful" || code === "unsubscribed_successfully";
}

/** The meaning of a code; undefined for a code that the spec does not list. */
export function readingOf(code: string): Reading | undefined {
  return byCode.get(code);
}

/** What decides the meaning of an error answer: its status, its Error object if it has one, and the call. */
export interface ErrorAnswer
  extends Pick<UpstreamError, "httpStatus">,
    Partial<Pick<UpstreamError, "code" | "type">> {
  /** The request carried a customer's own credentials (X-CUSTOMER-AUTH or X-CUSTOMER-RID). */
  readonly asCustomer: boolean;
  readonly movesMoney: boolean;
}

/**
 * Returns what an error answer means: by its code if the table has it, else by HTTP status and
 * error type. Too Many Requests and 5xx outrank the code; HTTP 401 outranks codes about rights.
 */
export function readError(answer: ErrorAnswer): Reading {
  const { httpStatus, code, type, movesMoney } = answer;
  if (isRateLimit(httpStatus, code)) return tooMany;
  if (httpStatus >= 500) return failed;
  const asCustomer = answer.asCustomer || type === ErrorType.CUSTOMER_ERROR;
  const known = byCode.get(code ?? "");
  if (httpStatus === 401 && (known === undefined || known === notAllowed)) {
    return asCustomer ? customerToken : credentials;
  }
  if (asCustomer && known?.toCustomer) return known.toCustomer;
  if (!movesMoney && known?.withoutMoney) return known.withoutMoney;
  const reading = known ?? byStatus.get(httpStatus) ?? readType(type, httpStatus);
  // Each error of the service is an Error object: that nothing is there says a proxy or a wrong path.
  // Whoever believes that a payout is unknown makes it again.
  return reading === unknownThing && !code && !type ? failed : reading;
}

/** Whether an answer is the spec's Too Many Requests; the spec gives no HTTP status for it. */
export function isRateLimit(httpStatus: number, code: string | undefined): boolean {
  return httpStatus === 429 || code === "too_many_requests";
}

/** HTTP statuses that say more than an error type. */
const byStatus: ReadonlyMap<number, Reading> = new Map([
  [402, declined],
  [403, notAllowed],
  [404, unknownThing],
  [408, failed],
  [409, wrongState],
  [410, unknownThing],
]);

function readType(type: ErrorType | undefined, httpStatus: number): Reading {
  switch (type) {
    case ErrorType.INVALID_REQUEST_ERROR:
      return badInput;
    case ErrorType.PAYMENT_METHOD_ERROR:
    case ErrorType.PAYMENT_ERROR:
      return declined;
    case ErrorType.PAYMENT_SETTINGS_ERROR:
    case ErrorType.CUSTOMER_ERROR:
      return notAllowed;
    case ErrorType.API_ERROR:
      return failed;
    default:
      // A bare 4xx blames the request; any other status says nothing.
      return httpStatus >= 400 ? badInput : failed;
  }
}

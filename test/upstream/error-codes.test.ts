import assert from "node:assert/strict";
import { test } from "node:test";
import type { ErrorCode } from "../../src/errors.ts";
import { ErrorType } from "../../src/gen/payments/v1/error_pb.ts";
import { readError, readingOf } from "../../src/upstream/error-codes.ts";

/** The spec's Errors part, word for word. */
const errorCodes = words(`
  authorization_failed customer_auth_not_found request_failed internal_error access_not_allowed
  invalid_request_body payment_settings_not_found transaction_already_paid action_not_allowed
  action_already_done transaction_success_primary_not_found payment_method_not_allowed
  wallet_not_configured payment_method_already_confirmed payment_method_not_found
  invalid_card_token customer_auth_token_expired_or_invalid customer_profile_not_found
  customer_id_not_passed transaction_not_found waiting_for_verification transaction_amount_limit
  invalid_data transaction_declined authorization_error transaction_rejected
  transaction_successful anti_fraud_check card_not_supported confirmation_timeout
  invalid_card_data invalid_currency pending waiting_for_complete access_error card_expired
  receiver_info_error transaction_limit_exceeded transaction_not_supported 3ds_not_supported
  3ds_required failed_to_create_transaction failed_to_finish_transaction insufficient_funds
  invalid_phone_number card_has_constraints pin_tries_exceeded session_expired timeout
  transaction_created waiting_for_redirect wrong_amount test_transaction subscription_successful
  unsubscribed_successfully wrong_pin wrong_authorization_code wrong_cavv wrong_cvv
  wrong_account_number confirm_required cvv_is_required confirmation_required
  sender_info_required missed_payout_method_data card_verification_required
  incorrect_refund_sum_or_currency payment_card_has_invalid_status wrong_card_number
  user_not_found failed_to_send_sms wrong_sms_password card_not_found
  payment_system_not_supported country_not_supported no_discount_found failed_to_load_wallet
  invalid_verification_code additional_information_is_pending transaction_is_not_recurring
  confirm_amount_cannot_be_more_than_the_transaction_amount card_bin_not_found
  currency_rate_not_found invalid_recipient_name daily_card_usage_limit_reached
  invalid_transaction_amount card_type_is_not_supported store_is_blocked store_is_not_active
  transaction_cannot_be_processed invalid_transaction_status public_key_not_found
  terminal_not_found fee_not_found failed_to_verify_card invalid_transaction_type restricted_ip
  invalid_token preauth_not_allowed token_does_not_exist reached_the_limit_of_attempts_for_ip
  card_branch_is_blocked card_branch_daily_limit_reached completion_limit_reached
  recurring_transactions_not_allowed transaction_is_canceled_by_payer payment_was_refunded
  card_is_lost_or_stolen plan_not_found plan_not_active plan_project_missing
  subscription_auto_renew_locked subscription_not_found subscription_not_active
  subscription_already_exists order_canceled
`);

/** The spec's operation info statuses, word for word. */
const operationCodes = words(`
  transaction_successful contract_was_signed_on_client_side refund_successful pending
  waiting_for_redirect confirmation_required failed_to_create_transaction internal_error
  transaction_not_found wrong_cooperation_type transaction_rejected order_expired
  transaction_declined user_not_found insufficient_funds transaction_is_canceled_by_payer
  transaction_limit_exceeded transaction_not_supported wrong_payment_count
  wrong_installment_period banking_application_is_not_installed bank_is_not_supported
  invalid_phone_number simultaneous_open_orders_not_supported_by_bank transaction_amount_limit
  finmon_validation_failed insufficient_funds_for_refund
`);

/** The rows of contract section 9, by their RPC code. */
const groups: Partial<Record<ErrorCode, string>> = {
  INVALID_ARGUMENT: `
    invalid_request_body invalid_data invalid_card_token invalid_card_data invalid_currency
    customer_id_not_passed receiver_info_error invalid_phone_number wrong_amount
    wrong_account_number cvv_is_required sender_info_required missed_payout_method_data
    incorrect_refund_sum_or_currency wrong_card_number
    confirm_amount_cannot_be_more_than_the_transaction_amount card_bin_not_found
    currency_rate_not_found invalid_recipient_name invalid_transaction_amount
    invalid_transaction_type wrong_cooperation_type wrong_payment_count
    wrong_installment_period
  `,
  NOT_FOUND: `
    transaction_success_primary_not_found payment_method_not_found customer_profile_not_found
    transaction_not_found user_not_found card_not_found no_discount_found token_does_not_exist
    plan_not_found subscription_not_found
  `,
  ALREADY_EXISTS: `
    transaction_already_paid action_already_done payment_method_already_confirmed
    subscription_already_exists transaction_successful subscription_successful
    unsubscribed_successfully contract_was_signed_on_client_side refund_successful
  `,
  PERMISSION_DENIED: `
    access_not_allowed payment_settings_not_found action_not_allowed
    payment_method_not_allowed wallet_not_configured card_not_supported access_error
    transaction_not_supported payment_system_not_supported country_not_supported
    card_type_is_not_supported store_is_blocked public_key_not_found terminal_not_found
    fee_not_found restricted_ip preauth_not_allowed card_branch_is_blocked
    recurring_transactions_not_allowed bank_is_not_supported
  `,
  UNAUTHENTICATED: `
    customer_auth_not_found customer_auth_token_expired_or_invalid invalid_token
  `,
  INTERNAL: `
    authorization_failed
  `,
  RESOURCE_EXHAUSTED: `
    reached_the_limit_of_attempts_for_ip
  `,
  UNAVAILABLE: `
    request_failed internal_error timeout
  `,
  FAILED_PRECONDITION: `
    waiting_for_verification transaction_amount_limit transaction_declined authorization_error
    transaction_rejected anti_fraud_check confirmation_timeout pending waiting_for_complete
    card_expired transaction_limit_exceeded 3ds_not_supported 3ds_required
    failed_to_create_transaction failed_to_finish_transaction insufficient_funds
    card_has_constraints pin_tries_exceeded session_expired transaction_created
    waiting_for_redirect test_transaction wrong_pin wrong_authorization_code wrong_cavv
    wrong_cvv confirm_required confirmation_required card_verification_required
    payment_card_has_invalid_status failed_to_send_sms wrong_sms_password
    failed_to_load_wallet invalid_verification_code additional_information_is_pending
    transaction_is_not_recurring daily_card_usage_limit_reached store_is_not_active
    transaction_cannot_be_processed invalid_transaction_status failed_to_verify_card
    card_branch_daily_limit_reached completion_limit_reached transaction_is_canceled_by_payer
    payment_was_refunded card_is_lost_or_stolen plan_not_active plan_project_missing
    subscription_auto_renew_locked subscription_not_active order_canceled order_expired
    banking_application_is_not_installed simultaneous_open_orders_not_supported_by_bank
    finmon_validation_failed insufficient_funds_for_refund
  `,
};

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

test("each of the spec's 116 codes and operation status codes has a meaning", () => {
  assert.equal(new Set(errorCodes).size, 116);
  assert.equal(errorCodes.length, 116);
  assert.equal(operationCodes.length, 27);
  for (const code of [...errorCodes, ...operationCodes]) assert.ok(readingOf(code), code);
  assert.equal(readingOf("no_code_of_the_spec"), undefined);
});

test("each code belongs to the row of the contract that its name says", () => {
  const expected = new Map<string, ErrorCode>();
  for (const [code, names] of Object.entries(groups)) {
    for (const name of words(names)) {
      assert.ok(!expected.has(name), `${name} is expected twice`);
      expected.set(name, code as ErrorCode);
    }
  }
  for (const name of new Set([...errorCodes, ...operationCodes])) {
    assert.equal(readingOf(name)?.code, expected.get(name), name);
  }
});

test("only what a customer can change is worth another try", () => {
  assert.equal(readingOf("insufficient_funds")?.retry, "otherCard");
  assert.equal(readingOf("customer_auth_token_expired_or_invalid")?.retry, "newToken");
  assert.equal(readingOf("reached_the_limit_of_attempts_for_ip")?.retry, "after");
  assert.equal(readingOf("internal_error")?.retry, "yes");
  for (const code of ["invalid_data", "card_not_found", "transaction_already_paid"]) {
    assert.equal(readingOf(code)?.retry, "no", code);
  }
});

test("the outcome stays open for failures of the service and for what tells of no failure", () => {
  const open = [...errorCodes, ...operationCodes].filter((code) => readingOf(code)?.leavesOpen);
  assert.deepEqual(
    [...new Set(open)].sort(),
    words(`additional_information_is_pending contract_was_signed_on_client_side internal_error
      pending refund_successful request_failed subscription_successful test_transaction timeout
      transaction_created transaction_successful unsubscribed_successfully waiting_for_complete
      waiting_for_redirect waiting_for_verification`),
  );
});

const answers: Array<[what: string, answer: Parameters<typeof readError>[0], code: ErrorCode]> = [
  [
    "429 whatever its code",
    { httpStatus: 429, code: "invalid_data", asCustomer: false },
    "RESOURCE_EXHAUSTED",
  ],
  [
    "too_many_requests at any status",
    { httpStatus: 503, code: "too_many_requests", asCustomer: false },
    "RESOURCE_EXHAUSTED",
  ],
  [
    "5xx whatever its code",
    { httpStatus: 500, code: "card_not_found", asCustomer: false },
    "UNAVAILABLE",
  ],
  [
    "a known code rather than its status",
    { httpStatus: 404, code: "invalid_currency", asCustomer: false },
    "INVALID_ARGUMENT",
  ],
  ["a bare 401", { httpStatus: 401, asCustomer: false }, "INTERNAL"],
  ["a bare 401 to a customer's token", { httpStatus: 401, asCustomer: true }, "UNAUTHENTICATED"],
  [
    "401 with a general refusal",
    { httpStatus: 401, code: "access_error", asCustomer: false },
    "INTERNAL",
  ],
  [
    "401 with a customer's code",
    { httpStatus: 401, code: "customer_auth_not_found", asCustomer: false },
    "UNAUTHENTICATED",
  ],
  [
    "401 with a customer_error",
    { httpStatus: 401, code: "new", type: ErrorType.CUSTOMER_ERROR, asCustomer: false },
    "UNAUTHENTICATED",
  ],
  [
    "402 with a new code",
    { httpStatus: 402, code: "new", asCustomer: false },
    "FAILED_PRECONDITION",
  ],
  ["403 with a new code", { httpStatus: 403, code: "new", asCustomer: false }, "PERMISSION_DENIED"],
  ["404 with a new code", { httpStatus: 404, code: "new", asCustomer: false }, "NOT_FOUND"],
  ["408", { httpStatus: 408, asCustomer: false }, "UNAVAILABLE"],
  [
    "409 with a new code",
    { httpStatus: 409, code: "new", asCustomer: false },
    "FAILED_PRECONDITION",
  ],
  [
    "a new code of type invalid_request_error",
    { httpStatus: 200, code: "new", type: ErrorType.INVALID_REQUEST_ERROR, asCustomer: false },
    "INVALID_ARGUMENT",
  ],
  [
    "a new code of type payment_method_error",
    { httpStatus: 400, code: "new", type: ErrorType.PAYMENT_METHOD_ERROR, asCustomer: false },
    "FAILED_PRECONDITION",
  ],
  [
    "a new code of type payment_error",
    { httpStatus: 400, code: "new", type: ErrorType.PAYMENT_ERROR, asCustomer: false },
    "FAILED_PRECONDITION",
  ],
  [
    "a new code of type payment_settings_error",
    { httpStatus: 400, code: "new", type: ErrorType.PAYMENT_SETTINGS_ERROR, asCustomer: false },
    "PERMISSION_DENIED",
  ],
  [
    "a new code of type api_error",
    { httpStatus: 400, code: "new", type: ErrorType.API_ERROR, asCustomer: false },
    "UNAVAILABLE",
  ],
  [
    "a new code without type, 4xx",
    { httpStatus: 422, code: "new", asCustomer: false },
    "INVALID_ARGUMENT",
  ],
  [
    "a new code without type, 2xx",
    { httpStatus: 200, code: "new", asCustomer: false },
    "UNAVAILABLE",
  ],
];

for (const [what, answer, code] of answers) {
  test(`${what} is ${code}`, () => {
    assert.equal(readError(answer).code, code);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { GatewayError } from "../../src/errors.ts";
import { ErrorType, UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { codeOf } from "../../src/graphql/errors.ts";
import { statusCodes } from "../../src/rpc/errors.ts";
import { listedCodes, type Retry, readError, readingOf } from "../../src/upstream/error-codes.ts";

/** How callers see an Error object, for a group of codes with the same meaning. */
interface Row {
  readonly of: string;
  readonly rpc: Code;
  /** The code in `errors`; a mutation returns a PaymentServiceError or a RateLimitError. */
  readonly graphql: string;
  readonly retry: Retry;
  /** Whether a call that moves money ends as UNKNOWN, with an OutcomeUnknown. */
  readonly leavesOpen?: boolean;
  readonly codes: string;
}

const rows: Row[] = [
  {
    of: "a bad field, amount, currency or card data",
    ...{ rpc: Code.InvalidArgument, graphql: "BAD_USER_INPUT", retry: "no" },
    codes: `
      invalid_request_body invalid_data invalid_card_token invalid_card_data invalid_currency
      customer_id_not_passed receiver_info_error invalid_phone_number wrong_amount
      wrong_account_number cvv_is_required sender_info_required missed_payout_method_data
      incorrect_refund_sum_or_currency wrong_card_number
      confirm_amount_cannot_be_more_than_the_transaction_amount card_bin_not_found
      currency_rate_not_found invalid_recipient_name invalid_transaction_amount
      invalid_transaction_type wrong_cooperation_type wrong_payment_count
      wrong_installment_period`,
  },
  {
    of: "an unknown payment, card, subscription, user or plan",
    ...{ rpc: Code.NotFound, graphql: "NOT_FOUND", retry: "no" },
    codes: `
      transaction_success_primary_not_found payment_method_not_found customer_profile_not_found
      transaction_not_found user_not_found card_not_found no_discount_found token_does_not_exist
      plan_not_found subscription_not_found`,
  },
  {
    of: "what is done already",
    ...{ rpc: Code.AlreadyExists, graphql: "UPSTREAM_ERROR", retry: "no" },
    codes: `
      transaction_already_paid action_already_done payment_method_already_confirmed
      subscription_already_exists`,
  },
  {
    of: "a state that forbids it",
    ...{ rpc: Code.FailedPrecondition, graphql: "UPSTREAM_ERROR", retry: "no" },
    codes: `
      3ds_required confirm_required card_verification_required transaction_is_not_recurring
      store_is_not_active invalid_transaction_status completion_limit_reached
      payment_was_refunded plan_not_active plan_project_missing subscription_auto_renew_locked
      subscription_not_active order_canceled order_expired
      simultaneous_open_orders_not_supported_by_bank`,
  },
  {
    of: "what is not allowed or not set up",
    ...{ rpc: Code.PermissionDenied, graphql: "FORBIDDEN", retry: "no" },
    codes: `
      access_not_allowed payment_settings_not_found action_not_allowed
      payment_method_not_allowed wallet_not_configured access_error store_is_blocked
      public_key_not_found terminal_not_found fee_not_found restricted_ip preauth_not_allowed
      recurring_transactions_not_allowed`,
  },
  {
    of: "a customer's token",
    ...{ rpc: Code.Unauthenticated, graphql: "UNAUTHENTICATED", retry: "newToken" },
    codes: "customer_auth_not_found customer_auth_token_expired_or_invalid",
  },
  {
    of: "the merchant's own credentials",
    ...{ rpc: Code.Internal, graphql: "UPSTREAM_ERROR", retry: "no" },
    codes: "authorization_failed",
  },
  {
    of: "a decline",
    ...{ rpc: Code.FailedPrecondition, graphql: "UPSTREAM_ERROR", retry: "otherCard" },
    codes: `
      transaction_amount_limit transaction_declined authorization_error transaction_rejected
      anti_fraud_check confirmation_timeout card_expired transaction_limit_exceeded
      3ds_not_supported failed_to_create_transaction failed_to_finish_transaction
      insufficient_funds card_has_constraints pin_tries_exceeded session_expired wrong_pin
      wrong_authorization_code wrong_cavv wrong_cvv payment_card_has_invalid_status
      failed_to_send_sms wrong_sms_password failed_to_load_wallet invalid_verification_code
      daily_card_usage_limit_reached transaction_cannot_be_processed failed_to_verify_card
      card_branch_is_blocked card_branch_daily_limit_reached invalid_token
      transaction_is_canceled_by_payer card_is_lost_or_stolen card_not_supported
      card_type_is_not_supported payment_system_not_supported country_not_supported
      bank_is_not_supported transaction_not_supported
      banking_application_is_not_installed finmon_validation_failed
      insufficient_funds_for_refund`,
  },
  {
    of: "too many attempts",
    ...{ rpc: Code.ResourceExhausted, graphql: "RATE_LIMITED", retry: "after" },
    codes: "reached_the_limit_of_attempts_for_ip",
  },
  {
    of: "a failure of the service",
    ...{ rpc: Code.Unavailable, graphql: "UPSTREAM_UNAVAILABLE", retry: "yes" },
    leavesOpen: true,
    codes: "request_failed internal_error timeout",
  },
  {
    of: "what goes on",
    ...{ rpc: Code.FailedPrecondition, graphql: "UPSTREAM_ERROR", retry: "lookUp" },
    leavesOpen: true,
    codes: `
      waiting_for_verification pending confirmation_required waiting_for_complete
      transaction_created waiting_for_redirect test_transaction
      additional_information_is_pending`,
  },
  {
    of: "what went well",
    ...{ rpc: Code.AlreadyExists, graphql: "UPSTREAM_ERROR", retry: "lookUp" },
    leavesOpen: true,
    codes: `
      transaction_successful subscription_successful unsubscribed_successfully
      contract_was_signed_on_client_side refund_successful`,
  },
];

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

test("each code of the spec is in exactly one row, and no other code is listed", () => {
  const listed = rows.flatMap(({ codes }) => words(codes));
  // Of the spec's Errors part 116, of its operation info statuses 27, and 16 are in both.
  assert.deepEqual([listed.length, new Set(listed).size], [127, 127]);
  assert.equal(readingOf("no_code_of_the_spec"), undefined);
  // The spec lists too_many_requests elsewhere, with the rate limit.
  assert.deepEqual([...listedCodes].sort(), [...listed, "too_many_requests"].sort());
});

for (const { of, rpc, graphql, retry, leavesOpen = false, codes } of rows) {
  test(`${of}: ${Code[rpc]}, in GraphQL ${graphql}`, () => {
    for (const code of words(codes)) {
      const answer = { httpStatus: 400, code, asCustomer: false, movesMoney: true };
      const reading = readError(answer);
      const error = new GatewayError(reading.code, "", {
        upstream: create(UpstreamErrorSchema, { code }),
      });
      assert.deepEqual(
        [statusCodes[reading.code], codeOf(error), reading.retry, reading.leavesOpen ?? false],
        [rpc, graphql, retry, leavesOpen],
        code,
      );
    }
  });
}

/**
 * How an Error object is read: its HTTP status, its code (`-` for none), then its type, `customer`
 * if a customer's token was sent, or `money` if the call moves money; and the error that it becomes.
 */
const answers = lines(`
  429 invalid_data                              RESOURCE_EXHAUSTED
  503 too_many_requests                         RESOURCE_EXHAUSTED
  500 card_not_found                            UNAVAILABLE
  404 invalid_currency                          INVALID_ARGUMENT
  400 invalid_token                             FAILED_PRECONDITION
  400 invalid_token          customer           UNAUTHENTICATED
  401 invalid_token          CUSTOMER_ERROR     UNAUTHENTICATED
  400 failed_to_load_wallet                     UNAVAILABLE
  400 failed_to_load_wallet  money              FAILED_PRECONDITION
  400 -                                         INVALID_ARGUMENT
  401 -                                         INTERNAL
  401 -                      customer           UNAUTHENTICATED
  401 access_error                              INTERNAL
  401 customer_auth_not_found                   UNAUTHENTICATED
  401 new                    CUSTOMER_ERROR     UNAUTHENTICATED
  402 new                                       FAILED_PRECONDITION
  403 -                                         PERMISSION_DENIED
  404 new                                       NOT_FOUND
  404 -                                         UNAVAILABLE
  410 -                                         UNAVAILABLE
  404 -              INVALID_REQUEST_ERROR      NOT_FOUND
  408 -                                         UNAVAILABLE
  409 new                                       FAILED_PRECONDITION
  200 new            INVALID_REQUEST_ERROR      INVALID_ARGUMENT
  400 new            PAYMENT_METHOD_ERROR       FAILED_PRECONDITION
  400 new            PAYMENT_ERROR              FAILED_PRECONDITION
  400 new            PAYMENT_SETTINGS_ERROR     PERMISSION_DENIED
  400 new            API_ERROR                  UNAVAILABLE
  422 new                                       INVALID_ARGUMENT
  200 new                                       UNAVAILABLE
`);

function lines(text: string): string[][] {
  return text.trim().split("\n").map(words);
}

for (const [httpStatus, code = "", ...rest] of answers) {
  const is = rest.pop();
  test(`${[httpStatus, code, ...rest].join(" ")} is ${is}`, () => {
    const type = ErrorType[rest[0] as keyof typeof ErrorType];
    const reading = readError({
      ...{ httpStatus: Number(httpStatus), ...(code !== "-" && { code }), ...(type && { type }) },
      ...{ asCustomer: rest.includes("customer"), movesMoney: rest.includes("money") },
    });
    assert.equal(reading.code, is);
  });
}

import { readFileSync } from "node:fs";
import type { DescMessage } from "@bufbuild/protobuf";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { OperationSchema } from "../../src/gen/payments/v1/operation_pb.ts";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import {
  ConfirmPaymentRequestSchema,
  CreatePaymentRequestSchema,
  CreateRecurrentPaymentRequestSchema,
  ResendCallbackRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import { RequestPayoutRequestSchema } from "../../src/gen/payments/v1/payout_service_pb.ts";
import {
  DeactivateSubscriptionResponseSchema,
  UpdateSubscriptionRequestSchema,
  UpdateSubscriptionResponseSchema,
} from "../../src/gen/payments/v1/subscription_service_pb.ts";
import { DeletedWalletItemSchema, WalletItemSchema } from "../../src/gen/payments/v1/wallet_pb.ts";
import { DeleteWalletItemRequestSchema } from "../../src/gen/payments/v1/wallet_service_pb.ts";

/**
 * Every body of the REST interface with its fixtures: `<name>.json` is the body as in the spec's
 * tables, `<name>.message.json` the message in protobuf's own JSON.
 */
export const BODIES: ReadonlyArray<readonly [schema: DescMessage, ...fixtures: string[]]> = [
  [PaymentSchema, "payment"],
  [PayoutSchema, "payout", "payout-callback"],
  [WalletItemSchema, "wallet-item-find", "wallet-item-confirmation"],
  [DeletedWalletItemSchema, "deleted-wallet-item"],
  [UpdateSubscriptionResponseSchema, "subscription-updated"],
  [DeactivateSubscriptionResponseSchema, "subscription-deactivated"],
  [OperationSchema, "operation"],
  [UpstreamErrorSchema, "error"],
  [
    CreatePaymentRequestSchema,
    "create-payment-cc",
    "create-payment-card-hosted",
    "create-payment-cc-token",
    "create-payment-wallet",
    "create-payment-apple-pay",
    "create-payment-google-pay",
    "create-payment-decrypted-apple-pay",
    "create-payment-decrypted-google-pay",
  ],
  [CreateRecurrentPaymentRequestSchema, "create-recurrent-payment"],
  [ConfirmPaymentRequestSchema, "confirm-payment"],
  [ResendCallbackRequestSchema, "resend-callback"],
  [RequestPayoutRequestSchema, "request-payout-card", "request-payout-cash"],
  [DeleteWalletItemRequestSchema, "delete-wallet-item"],
  [UpdateSubscriptionRequestSchema, "update-subscription"],
];

/** Text of a file in test/fixtures/wire. */
export function fixture(file: string): string {
  return readFileSync(new URL(`../fixtures/wire/${file}`, import.meta.url), "utf8");
}

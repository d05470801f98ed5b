import type { MessageInitShape } from "@bufbuild/protobuf";
import type { PaymentCustomerSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import type { RecipientUserSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import type { ApiErrorCode } from "../api/api-error.ts";
import type { Card } from "./cards.ts";
import type { ReceiptCode } from "./receipts.ts";
import type { Scenario } from "./scenarios.ts";

export type Status = "init" | "pending" | "success" | "failure";

export type OperationKind = "payment" | "confirm" | "refund" | "cancel" | "lookup" | "recurrent";

/** A status code of the spec: why an operation has its status. */
export type StatusCode =
  | "transaction_successful"
  | "transaction_created"
  | "pending"
  | "waiting_for_redirect"
  | ApiErrorCode;

/** One attempt to pay, with all later operations on it. */
export interface PaymentRecord {
  readonly paymentId: string;
  readonly transactionId: string;
  readonly externalId: string;
  readonly unifiedExternalId?: string | undefined;
  /** The project of another merchant, for a payment in its favor; undefined: the merchant's own. */
  readonly projectId?: string | undefined;
  /** The text of the request's JSON number. */
  readonly amount: string;
  readonly currency: string;
  readonly description?: string | undefined;
  readonly payload?: string | undefined;
  readonly callbackUrl?: string | undefined;
  readonly resultUrl?: string | undefined;
  /** False: the funds are held until a confirmation. */
  readonly confirm: boolean;
  readonly customer: Payer;
  readonly methodType: MethodType;
  /** Undefined until the customer has filled in the checkout page. */
  card?: Card | undefined;
  readonly saveToWallet: boolean;
  readonly recurrentId?: string | undefined;
  readonly subscriptionId?: string | undefined;
  readonly recipientIban?: string | undefined;
  readonly products: readonly ProductRecord[];
  readonly colorMode?: "white" | "dark" | undefined;
  /** Secret part of the URLs of the payment's pages. */
  readonly pageToken: string;
  /** What the customer has to do: fill in the checkout page, or pass 3DS. */
  waitingFor?: "card" | "challenge" | undefined;
  /** In the order of creation; the first one charges the card. */
  readonly operations: [PaymentOperationRecord, ...PaymentOperationRecord[]];
}

export interface PaymentOperationRecord {
  readonly operationId: string;
  readonly kind: OperationKind;
  readonly amount: string;
  readonly payload?: string | undefined;
  readonly callbackUrl?: string | undefined;
  readonly createdAt: Date;
  readonly rrn: string;
  readonly authCode: string;
  scenario: Scenario;
  status: Status;
  statusCode: StatusCode;
  processedAt?: Date | undefined;
  /** Current code of the fiscal receipt; undefined if the operation has none. */
  receiptCode?: ReceiptCode | undefined;
}

export type MethodType = "cc_token" | "cc_number" | "wallet" | "google_pay" | "apple_pay" | "card";

export type Payer = MessageInitShape<typeof PaymentCustomerSchema>;

export interface ProductRecord {
  readonly name?: string | undefined;
  readonly quantity?: string | undefined;
  readonly netAmount?: string | undefined;
  readonly currency?: string | undefined;
  readonly taxGroup?: number | undefined;
}

export interface PayoutRecord {
  readonly transactionId: string;
  readonly externalId: string;
  readonly fcId: number;
  readonly payoutType: "card" | "cash";
  readonly originalAmount: string;
  readonly currency: string;
  readonly description: string;
  readonly entityId: string;
  readonly callbackUrl?: string | undefined;
  readonly recipient: MessageInitShape<typeof RecipientUserSchema>;
  readonly createdAt: Date;
  readonly scenario: Scenario;
  status: Status;
  statusCode: StatusCode;
}

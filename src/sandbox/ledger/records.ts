import type { ApiErrorCode } from "../api/api-error.ts";
import type { Card } from "./cards.ts";
import type { ReceiptCode } from "./receipts.ts";
import type { Scenario } from "./scenarios.ts";

export type Status = "init" | "pending" | "success" | "failure";

export type OperationKind = "payment" | "confirm" | "refund" | "cancel" | "lookup" | "recurrent";

/** Why an operation is in its state: a code of the spec. */
export type StatusCode =
  | "transaction_successful"
  | "transaction_created"
  | "pending"
  | "waiting_for_redirect"
  | ApiErrorCode;

/** One attempt at paying, with everything that was done to it since. */
export interface PaymentRecord {
  readonly paymentId: string;
  readonly transactionId: string;
  readonly externalId: string;
  readonly unifiedExternalId?: string | undefined;
  /** The merchant's project; another one's for a payment in favor of another merchant. */
  readonly projectId?: string | undefined;
  /** The text of the JSON number in the request. */
  readonly amount: string;
  readonly currency: string;
  readonly description?: string | undefined;
  readonly payload?: string | undefined;
  readonly callbackUrl?: string | undefined;
  readonly resultUrl?: string | undefined;
  /** False: the funds are held until they are confirmed. */
  readonly confirm: boolean;
  readonly customer: Payer;
  readonly methodType: MethodType;
  /** Unknown until the customer has filled the checkout page in. */
  card?: Card | undefined;
  readonly saveToWallet: boolean;
  readonly recurrentId?: string | undefined;
  readonly subscriptionId?: string | undefined;
  readonly recipientIban?: string | undefined;
  readonly products: readonly ProductRecord[];
  readonly colorMode?: "white" | "dark" | undefined;
  /** Secret part of the addresses of the payment's pages. */
  readonly pageToken: string;
  /** What the customer has to do: fill the checkout page in, or pass 3DS. */
  waitingFor?: "card" | "challenge" | undefined;
  /** In the order of their making; the first one pays. */
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
  /** How the registration of its receipt stands; without one none is registered. */
  receiptCode?: ReceiptCode | undefined;
}

export type MethodType = "cc_token" | "cc_number" | "wallet" | "google_pay" | "apple_pay" | "card";

export interface Payer {
  readonly browserUserAgent?: string | undefined;
  readonly email?: string | undefined;
  readonly externalId?: string | undefined;
  readonly firstName?: string | undefined;
  readonly ipAddress?: string | undefined;
  readonly lastName?: string | undefined;
  readonly patronym?: string | undefined;
  readonly phone?: string | undefined;
}

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
  readonly recipient: PayoutPerson;
  readonly createdAt: Date;
  status: Status;
  statusCode: StatusCode;
}

export interface PayoutPerson {
  readonly email?: string | undefined;
  readonly firstName: string;
  readonly lastName: string;
  readonly middleName?: string | undefined;
  readonly phone?: string | undefined;
  readonly rid?: string | undefined;
  readonly ipn?: string | undefined;
  readonly externalId?: string | undefined;
}

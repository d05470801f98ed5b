import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { OperationSchema } from "../../src/gen/payments/v1/operation_pb.ts";
import {
  FiscalizationStatus,
  PaymentMethodType,
  PaymentOperation,
  PaymentSchema,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import type { Card } from "../ledger/cards.ts";
import { primaryOperation, waitsForCustomer } from "../ledger/ledger.ts";
import { onePercent } from "../ledger/money.ts";
import { receiptOf } from "../ledger/receipts.ts";
import type {
  OperationKind,
  PaymentOperationRecord,
  PaymentRecord,
  StatusCode,
} from "../ledger/records.ts";
import { describe } from "./api-error.ts";
import { bodyOf } from "./http.ts";

/**
 * "Payment transaction data" of one operation, for responses and callbacks. `baseUrl` is where
 * browsers reach the sandbox's pages. As in the spec, `action` is null if no action is required.
 */
export function paymentBody(
  payment: PaymentRecord,
  operation: PaymentOperationRecord,
  baseUrl: string,
): string {
  return bodyWithAction(PaymentSchema, toPayment(payment, operation, baseUrl));
}

/** The body that the operation had while it was pending. */
export function pendingPaymentBody(
  payment: PaymentRecord,
  operation: PaymentOperationRecord,
  baseUrl: string,
): string {
  const earlier = { ...operation, status: "pending", statusCode: "pending" } as const;
  return paymentBody(payment, { ...earlier, processedAt: undefined }, baseUrl);
}

/** "Operation info" of one operation. */
export function operationBody(
  payment: PaymentRecord,
  operation: PaymentOperationRecord,
  baseUrl: string,
): string {
  const { details, action, actionRequired, receiptUrl } = toPayment(payment, operation, baseUrl);
  const { method, operationId, transactionId, billingOrderId, gatewayOrderId } = details;
  const { rrn, amount, currency } = details;
  return bodyWithAction(OperationSchema, {
    id: operationId,
    externalId: payment.externalId,
    unifiedExternalId: payment.unifiedExternalId,
    details: {
      ...{ method, operationId, transactionId, billingOrderId, gatewayOrderId },
      ...{ rrn, amount, currency },
    },
    // Operation info has no status init.
    status: PaymentStatus[upper(operation.status === "init" ? "pending" : operation.status)],
    statusCode: operationStatusCode(operation),
    statusDescription: details.statusDescription,
    createdAt: details.createdAt,
    processedAt: details.processedAt,
    payload: details.payload,
    authCode: details.authCode,
    bankName: details.bankName,
    action,
    actionRequired,
    receiptUrl,
    paymentMethodType: payment.methodType,
    oneStage: payment.confirm,
  });
}

/** Path of the page that the customer has to open; undefined if there is none. */
export function pagePath({ waitingFor, pageToken }: PaymentRecord): string | undefined {
  if (waitingFor === undefined) return undefined;
  return waitingFor === "card" ? `/checkout/${pageToken}` : `/3ds/${pageToken}`;
}

/** Human-readable form of a status code. */
export function describeStatus(code: StatusCode): string {
  if (code === "transaction_successful") return "Transaction is successful";
  if (code === "transaction_created") return "Transaction is created";
  if (code === "pending") return "Transaction is pending";
  return code === "waiting_for_redirect" ? "Waiting for the customer" : describe(code);
}

function toPayment(payment: PaymentRecord, operation: PaymentOperationRecord, baseUrl: string) {
  const waits = waitsForCustomer(payment, operation);
  const success = operation.status === "success";
  const receiptUrl = `${baseUrl}/receipt/${payment.pageToken}`;
  return {
    action: waits
      ? {
          type: payment.waitingFor === "card" ? "redirect" : "3ds",
          value: `${baseUrl}${pagePath(payment)}`,
        }
      : undefined,
    actionRequired: waits,
    details: {
      amount: operation.amount,
      billingOrderId: `b-${payment.paymentId}`,
      createdAt: timestampFromDate(operation.createdAt),
      currency: payment.currency,
      description: payment.description,
      gatewayOrderId: `g-${operation.operationId}`,
      payload: operation.payload ?? payment.payload,
      paymentId: payment.paymentId,
      processedAt: operation.processedAt && timestampFromDate(operation.processedAt),
      rrn: success ? operation.rrn : undefined,
      status: PaymentStatus[upper(operation.status)],
      statusCode: operation.statusCode,
      statusDescription: describeStatus(operation.statusCode),
      transactionId: payment.transactionId,
      operationId: operation.operationId,
      authCode: success ? operation.authCode : undefined,
      fee: success
        ? { amount: onePercent(operation.amount), currency: payment.currency }
        : undefined,
      terminalName: "sandbox",
      bankName: "Sandbox Bank",
      method: providerMethod(payment, operation.kind),
      recurrentId: payment.recurrentId,
      mid: "sandbox-mid",
      tid: "sandbox-tid",
      recipientIban: payment.recipientIban,
      subscriptionId: payment.subscriptionId,
      fiscalization: fiscalization(operation, receiptUrl),
    },
    externalId: payment.externalId,
    unifiedExternalId: payment.unifiedExternalId,
    batchExternalId: primaryOperation(payment).scenario.batch ? "sandbox-batch-1" : undefined,
    id: payment.paymentId,
    projectId: payment.projectId ?? "sandbox",
    isSuccess: success,
    receiptUrl: success ? receiptUrl : undefined,
    paymentMethod: { type: PaymentMethodType[upper(payment.methodType)], ...cardView(payment) },
    customer: payment.customer,
    operation: PaymentOperation[upper(operation.kind)],
  } satisfies MessageInitShape<typeof PaymentSchema>;
}

/** A fiscal receipt gets its number and URL only when it is registered. */
function fiscalization({ receiptCode, rrn }: PaymentOperationRecord, receiptUrl: string) {
  if (receiptCode === undefined) return undefined;
  const { code, status, description } = receiptOf(receiptCode);
  return {
    ...(status === FiscalizationStatus.SUCCESS && { fiscalId: rrn, fiscalUrl: receiptUrl }),
    status,
    statusCode: code,
    statusDescription: description,
  };
}

function cardView({ card, methodType, saveToWallet }: PaymentRecord) {
  if (!card) return {};
  if (methodType === "apple_pay") return { applePay: cardFields(card) };
  if (methodType === "google_pay") return { googlePay: cardFields(card) };
  return { ccToken: { ...cardFields(card), savedCard: saveToWallet } };
}

function cardFields(card: Card) {
  return {
    bankShortName: "SANDBOX",
    expiresAt: timestampFromDate(card.expiresAt),
    mask: card.mask,
    paymentSystem: card.paymentSystem,
    token: card.token,
    binCountry: "UA",
  };
}

function providerMethod(payment: PaymentRecord, kind: OperationKind): string {
  if (kind === "payment" || kind === "recurrent") return payment.confirm ? "sale" : "hold";
  return kind === "confirm" ? "capture" : kind;
}

/** Operation info has fewer status codes; other failures become `transaction_declined`. */
function operationStatusCode({ kind, status, statusCode }: PaymentOperationRecord): string {
  if (status === "success") return kind === "refund" ? "refund_successful" : statusCode;
  if (status === "init") return "pending";
  if (status === "pending" || failureCodesOfOperations.has(statusCode)) return statusCode;
  return "transaction_declined";
}

const failureCodesOfOperations: ReadonlySet<StatusCode> = new Set([
  "internal_error",
  "transaction_not_found",
  "transaction_declined",
  "insufficient_funds",
  "transaction_is_canceled_by_payer",
]);

/** Writes `"action":null` as in the spec, since the encoder omits absent fields. */
function bodyWithAction<Desc extends typeof PaymentSchema | typeof OperationSchema>(
  schema: Desc,
  message: MessageInitShape<Desc>,
): string {
  const body = bodyOf(schema, message);
  return message.action ? body : `{"action":null,${body.slice(1)}`;
}

/** The name of an enum's value, as the generated code writes it. */
function upper<Name extends string>(name: Name): Uppercase<Name> {
  return name.toUpperCase() as Uppercase<Name>;
}

import { randomBytes, randomInt, randomUUID } from "node:crypto";
import type { OperationKind, PaymentOperationRecord, PaymentRecord } from "./records.ts";
import type { Scenario } from "./scenarios.ts";

export interface OperationInput {
  readonly kind: OperationKind;
  readonly amount: string;
  readonly scenario: Scenario;
  readonly payload?: string | undefined;
  readonly callbackUrl?: string | undefined;
  readonly createdAt: Date;
}

/** Creates a pending operation with new ids. */
export function newOperation(input: OperationInput): PaymentOperationRecord {
  return {
    ...input,
    operationId: randomUUID(),
    rrn: digits(12),
    authCode: digits(6),
    status: "pending",
    statusCode: "pending",
  };
}

export type PaymentInput = Omit<
  PaymentRecord,
  "paymentId" | "transactionId" | "pageToken" | "operations"
>;

/** Creates one attempt with new ids and its primary operation. */
export function newPayment(
  input: PaymentInput,
  kind: "payment" | "recurrent",
  scenario: Scenario,
  createdAt: Date,
): PaymentRecord {
  const { amount, callbackUrl } = input;
  return {
    ...input,
    paymentId: randomUUID(),
    transactionId: randomUUID(),
    pageToken: randomBytes(24).toString("hex"),
    operations: [newOperation({ kind, amount, scenario, callbackUrl, createdAt })],
  };
}

function digits(count: number): string {
  return Array.from({ length: count }, () => randomInt(10)).join("");
}

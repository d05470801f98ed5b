import { paymentBody, pendingPaymentBody } from "../api/payment-view.ts";
import type { SandboxClock } from "../clock.ts";
import type { SandboxDelays } from "../options.ts";
import type { Addressee, Callbacks } from "./callbacks.ts";
import { isOpen, type Ledger, primaryOperation, succeeded, waitsForCustomer } from "./ledger.ts";
import { newOperation } from "./new-records.ts";
import { type ReceiptCode, receiptOfPayload } from "./receipts.ts";
import type { PaymentOperationRecord, PaymentRecord } from "./records.ts";
import { type Scenario, success } from "./scenarios.ts";
import type { Schedule } from "./schedule.ts";
import type { Wallets } from "./wallets.ts";

export type PaymentFlow = ReturnType<typeof createPaymentFlow>;

export interface FlowParts {
  readonly ledger: Ledger;
  readonly wallets: Wallets;
  readonly callbacks: Callbacks;
  readonly schedule: Schedule;
  readonly clock: SandboxClock;
  readonly delays: SandboxDelays;
  /** Where browsers reach the emulator's pages. */
  readonly baseUrl: string;
}

/** Moves recorded operations to their end and sends their callbacks. */
export function createPaymentFlow(parts: FlowParts) {
  const { ledger, wallets, callbacks, schedule, clock, delays, baseUrl } = parts;

  /** Ends the operation by its scenario: at once, later, or after the customer's 3DS decision. */
  function begin(payment: PaymentRecord, operation: PaymentOperationRecord): void {
    const { scenario } = operation;
    if (scenario.challenge && operation.kind === "payment") {
      payment.waitingFor = "challenge";
      operation.statusCode = "waiting_for_redirect";
      ledger.changed(payment);
      return;
    }
    payment.waitingFor = undefined;
    operation.statusCode = "pending";
    if (scenario.settles === "now") {
      settle(payment, operation, scenario.outcome);
      return;
    }
    if (scenario.begins === "init") {
      operation.status = "init";
      operation.statusCode = "transaction_created";
    }
    ledger.changed(payment);
    goOn(payment, operation);
  }

  /** Takes an open operation to its end, for which nobody has to do anything, some time later. */
  function goOn(payment: PaymentRecord, operation: PaymentOperationRecord): void {
    const { scenario } = operation;
    if (operation.status === "init") {
      schedule.after(delays.callbackMs, () => {
        if (operation.status !== "init") return;
        operation.status = "pending";
        operation.statusCode = "pending";
        ledger.changed(payment);
        announce(payment, operation);
        goOn(payment, operation);
      });
      return;
    }
    const ms = scenario.callbacks === "reordered" ? delays.callbackMs : delays.settleMs;
    schedule.after(ms, () => settle(payment, operation, scenario.outcome));
  }

  /** Ends a pending operation and sends its callbacks. Does nothing if it has already ended. */
  function settle(
    payment: PaymentRecord,
    operation: PaymentOperationRecord,
    wanted: Scenario["outcome"],
  ): void {
    if (!isOpen(operation)) return;
    const primary = operation === primaryOperation(payment);
    const paidAlready = ledger.attempts(payment.externalId).some(succeeded);
    const outcome =
      wanted === "success" && primary && paidAlready ? "transaction_already_paid" : wanted;
    ledger.changed(payment);
    if (primary) payment.waitingFor = undefined;
    operation.processedAt = new Date(clock.now());
    if (outcome === "success") {
      operation.status = "success";
      operation.statusCode = "transaction_successful";
      keepCard(payment);
      const [receipt, ...further] = receiptsOf(payment, operation);
      operation.receiptCode = receipt;
      announce(payment, operation);
      register(payment, operation, further);
      if (operation.scenario.lookup) lookUp(payment, operation);
    } else {
      operation.status = "failure";
      operation.statusCode = outcome;
      announce(payment, operation);
    }
  }

  /** Moves an operation's receipt through further codes, each with a callback. */
  function register(
    payment: PaymentRecord,
    operation: PaymentOperationRecord,
    [next, ...further]: readonly ReceiptCode[],
  ): void {
    if (next === undefined) return;
    schedule.after(delays.callbackMs, () => {
      operation.receiptCode = next;
      ledger.changed(payment);
      announce(payment, operation);
      register(payment, operation, further);
    });
  }

  function lookUp(payment: PaymentRecord, { amount, callbackUrl }: PaymentOperationRecord): void {
    const createdAt = new Date(clock.now());
    const scenario = success;
    const operation = newOperation({ kind: "lookup", amount, scenario, callbackUrl, createdAt });
    payment.operations.push(operation);
    begin(payment, operation);
  }

  function keepCard({ saveToWallet, card, customer }: PaymentRecord): void {
    if (saveToWallet && card && customer.externalId !== undefined) {
      wallets.keep(customer.externalId, card);
    }
  }

  function announce(payment: PaymentRecord, operation: PaymentOperationRecord): void {
    callbacks.announce(addressee(payment, operation), operation.scenario.callbacks, {
      current: () => paymentBody(payment, operation, baseUrl),
      pending: () => pendingPaymentBody(payment, operation, baseUrl),
    });
  }

  return {
    begin,
    settle,
    /** Continues what was under way with a saved payment. */
    resume(payment: PaymentRecord): void {
      for (const operation of payment.operations) {
        const waits = waitsForCustomer(payment, operation);
        if (isOpen(operation) && !waits) goOn(payment, operation);
        if (operation.receiptCode === undefined) continue;
        const receipts = receiptsOf(payment, operation);
        register(payment, operation, receipts.slice(receipts.indexOf(operation.receiptCode) + 1));
      }
    },
    /** Sends the callback of an operation's current state again. */
    resend(payment: PaymentRecord, operation: PaymentOperationRecord): void {
      if (!operation.scenario.resends) return;
      callbacks.resend(addressee(payment, operation), paymentBody(payment, operation, baseUrl));
    },
  };
}

function addressee(
  { paymentId: subject, externalId }: PaymentRecord,
  { callbackUrl: url }: PaymentOperationRecord,
): Addressee {
  return { subject, externalId, url };
}

/** The receipt's codes: by payload, else by scenario, else 1000 for products with a tax group. */
function receiptsOf(
  { products, payload }: PaymentRecord,
  operation: PaymentOperationRecord,
): readonly ReceiptCode[] {
  const asked = receiptOfPayload(operation.payload ?? payload);
  if (asked.length > 0) return asked;
  const { receipt } = operation.scenario;
  if (receipt.length > 0) return receipt;
  return products.some(({ taxGroup }) => taxGroup !== undefined) ? [1000] : [];
}

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import type { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import type { Fact } from "../../src/ledger/log.ts";
import { paymentState, payoutState } from "../../src/ledger/payment-state.ts";
import { ordersOf } from "./entries.ts";

const blank: Fact = {
  ...{ subjectId: "a", operation: "payment", operationId: "", rank: 2, status: "success" },
  ...{ amount: "10.00", currency: "UAH" },
};

/**
 * Parses a text such as `payment:success held 4.00 UAH @b`: operation and status, then `held` or
 * `taken` (not held), an amount (`?`: none), a currency, and the attempt (default: `@a`).
 */
function fact(text: string): Fact {
  const [told = "", ...rest] = text.split(" ");
  const [operation = "", status = ""] = told.split(":");
  const subject = rest.find((word) => word.startsWith("@"))?.slice(1);
  const amount = rest.find((word) => /^[\d.]+$/.test(word));
  const currency = rest.find((word) => /^[A-Z]{3}$/i.test(word));
  return {
    ...blank,
    ...{ operation, status, rank: status === "init" ? 0 : status === "pending" ? 1 : 2 },
    ...(subject !== undefined && { subjectId: subject }),
    ...(amount && { amount }),
    ...(rest.includes("?") && { amount: "" }),
    ...(currency && { currency }),
    ...(rest.includes("held") && { held: true }),
    ...(rest.includes("taken") && { held: false }),
  };
}

const payments: readonly (readonly [operations: string, state: keyof typeof PaymentState])[] = [
  ["", "UNSPECIFIED"],
  ["lookup:success", "UNSPECIFIED"],
  ["payment:init", "PENDING"],
  ["payment:pending", "PENDING"],
  ["payment:failure, payment:pending @b", "PENDING"],
  ["payment:success", "PAID"],
  ["recurrent:success", "PAID"],
  ["payment:failure, payment:success @b", "PAID"],
  ["payment:success, payment:pending @b", "PAID"],
  ["payment:failure", "FAILED"],
  ["payment:failure, payment:failure @b", "FAILED"],
  ["payment:success held", "AUTHORIZED"],
  ["payment:success held, confirm:pending", "AUTHORIZED"],
  ["payment:success held, confirm:failure", "AUTHORIZED"],
  ["payment:success held, confirm:success 4.00", "PAID"],
  ["payment:success held, confirm:success 4.00, refund:success 4.00", "REFUNDED"],
  ["payment:success held, open", "UNKNOWN"],
  ["payment:success held, cancel:success", "CANCELLED"],
  ["open", "UNKNOWN"],
  ["payment:failure, open", "UNKNOWN"],
  ["payment:pending, open", "UNKNOWN"],
  ["payment:success, open", "PAID"],
  ["payment:success, cancel:success", "CANCELLED"],
  ["payment:success, cancel:pending", "PAID"],
  ["payment:success, cancel:failure", "PAID"],
  ["cancel:success", "CANCELLED"],
  // A cancellation whose id matches no attempt takes back every success.
  ["payment:success, cancel:success @c", "CANCELLED"],
  ["payment:success, payment:failure @b, cancel:success @b", "PAID"],
  ["payment:success, cancel:success, payment:success @b", "PAID"],
  ["payment:success, cancel:success, payment:pending @b", "PENDING"],
  ["payment:success, refund:pending", "PAID"],
  ["payment:success, refund:failure", "PAID"],
  ["payment:success, refund:success 3.5", "PARTIALLY_REFUNDED"],
  ["payment:success, refund:success 3.5, refund:success 6.50", "REFUNDED"],
  ["payment:success 0.3, refund:success 0.1, refund:success 0.2", "REFUNDED"],
  ["payment:success, refund:success 10", "REFUNDED"],
  ["payment:success, refund:success 9.999999", "PARTIALLY_REFUNDED"],
  ["payment:success, refund:success ?", "PARTIALLY_REFUNDED"],
  ["payment:success, refund:success 10.00 USD", "PARTIALLY_REFUNDED"],
  ["payment:success, refund:success 10.00 uah", "REFUNDED"],
  // An answer that named no payment, and the callback that does.
  ["payment:success @, payment:success, refund:success", "REFUNDED"],
  ["payment:success @, payment:success, refund:success 5.00", "PARTIALLY_REFUNDED"],
  ["payment:success @, cancel:success", "CANCELLED"],
  ["payment:success @, payment:success, cancel:success", "CANCELLED"],
  ["payment:success @, payment:failure", "PAID"],
  ["payment:success held, confirm:success @", "PAID"],
  ["payment:success held @, payment:success", "AUTHORIZED"],
  ["payment:success held @, payment:success taken", "PAID"],
  ["payment:success, refund:success 5.00, refund:success 5.00 USD", "PARTIALLY_REFUNDED"],
  ["payment:success ?, refund:success", "PARTIALLY_REFUNDED"],
  ["refund:success", "PARTIALLY_REFUNDED"],
  ["payment:success, refund:success 1, open", "PARTIALLY_REFUNDED"],
  ["unknown:success", "UNSPECIFIED"],
];

const payouts: readonly (readonly [operations: string, state: keyof typeof PayoutState])[] = [
  ["", "UNSPECIFIED"],
  ["payout:init", "PENDING"],
  ["payout:pending", "PENDING"],
  ["payout:success", "PAID"],
  ["payout:failure", "FAILED"],
  ["payout:failure, payout:pending @b", "PENDING"],
  ["payout:failure, payout:success @b", "PAID"],
  ["payout:failure, open", "UNKNOWN"],
  ["payout:success, open", "PAID"],
];

/** The operations that a text tells of, and whether a call is open (`open`). */
function factsIn(text: string): { facts: Fact[]; isOpen: boolean } {
  const told = text === "" ? [] : text.split(", ");
  const facts = told.filter((one) => one !== "open").map(fact);
  return { facts, isOpen: facts.length < told.length };
}

describe("the state of a payment", () => {
  for (const [text, state] of payments) {
    it(`is ${state} after ${text || "nothing"}, in any order`, () => {
      const { facts, isOpen } = factsIn(text);
      for (const operations of ordersOf(facts)) {
        assert.equal(paymentState({ operations, holds: [] }, isOpen), PaymentState[state]);
      }
    });
  }

  it("is AUTHORIZED for a success while a hold is noted, unless an answer says that it is not held", () => {
    const stateOf = (text: string) => paymentState({ operations: [fact(text)], holds: ["call-1"] });
    assert.equal(stateOf("payment:success"), PaymentState.AUTHORIZED);
    assert.equal(stateOf("payment:success taken"), PaymentState.PAID);
  });
});

describe("the state of a payout", () => {
  for (const [text, state] of payouts) {
    it(`is ${state} after ${text || "nothing"}, in any order`, () => {
      const { facts, isOpen } = factsIn(text);
      for (const operations of ordersOf(facts)) {
        assert.equal(payoutState({ operations, holds: [] }, isOpen), PaymentState[state]);
      }
    });
  }
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CallOutcome, EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { intentOfCall, newCall } from "../../src/ledger/calls.ts";
import { currentState, firstEvent } from "../../src/ledger/current.ts";
import { type Known, nothingKnown } from "../../src/ledger/intents.ts";
import type { Entry } from "../../src/ledger/log.ts";
import { payment, step } from "./entries.ts";

/** What is known of these operations, whose events are in this order. */
function knownOf(told: readonly { entry: Entry; since?: number | undefined }[]): Known {
  const operations = told.map(({ entry, since }, n) => ({
    ...entry,
    ...{ since: `${since ?? n}`, place: `${n}` },
  }));
  return { ...nothingKnown, operations, cursor: "9" };
}

/**
 * The current event of these states, as step and payment_id. They are in the order of the
 * events that set them; `since` defaults to that order.
 */
function current(...told: (Parameters<typeof payment>[0] & { since?: number })[]) {
  const { event } =
    currentState(knownOf(told.map(({ since, ...rest }) => ({ entry: payment(rest), since })))) ??
    {};
  return event && `${step(event)} ${event.paymentId}`;
}

describe("the current state", () => {
  const success = { status: "success" };
  const failure = { status: "failure" };
  const cases: Readonly<Record<string, readonly [Parameters<typeof current>, string | undefined]>> =
    {
      "is unknown without a state": [[], undefined],
      "is the successful attempt": [
        [
          { paymentId: "a", ...success },
          { paymentId: "b", ...failure },
        ],
        "payment:success a",
      ],
      "is the latest of several successful operations that pay": [
        [success, { operation: "confirm", ...success }],
        "confirm:success pay-1",
      ],
      "is the attempt that began last while none succeeded": [
        [
          { paymentId: "b", since: 2 },
          { paymentId: "a", ...failure, since: 1 },
        ],
        "payment:pending b",
      ],
      "is a recurrent payment rather than its refund": [
        [{ operation: "recurrent" }, { operation: "refund" }],
        "recurrent:pending pay-1",
      ],
    };
  for (const [name, [told, expected]] of Object.entries(cases)) {
    it(name, () => assert.equal(current(...told), expected));
  }

  for (const operation of ["refund", "cancel", "lookup"]) {
    it(`is a ${operation} only while no operation that pays is known`, () => {
      assert.equal(current(failure, { operation, ...success }), "payment:failure pay-1");
      assert.equal(current({ operation }), `${operation}:pending pay-1`);
    });
  }
});

describe("the first event of a watch", () => {
  const order = { kind: EventKind.PAYMENT, externalId: "order-1" };
  /** Of a payment with these entries, and a call that was lost behind all of them. */
  const first = (needsOperator: boolean | undefined, ...entries: Entry[]) => {
    const call = newCall({ id: "call-1", method: "CreatePayment", leaseMs: 0 }, 1e14);
    const lost = { ...call, state: "unknown", needsOperator: needsOperator === true } as const;
    const calls = needsOperator === undefined ? [] : [intentOfCall(order, lost)];
    const known = knownOf(entries.map((entry) => ({ entry })));
    return firstEvent({ ...known, calls, updatedMs: 1_000 });
  };
  const failed = payment({ paymentId: "a", status: "failure" });
  const paid = payment({ paymentId: "b", status: "success" });
  const refunded = payment({ paymentId: "b", operation: "refund", status: "success" });

  for (const [outcome, needsOperator] of [
    [CallOutcome.UNKNOWN, false],
    [CallOutcome.NEEDS_OPERATOR, true],
  ] as const) {
    it(`is call outcome ${outcome} rather than an attempt without success`, () => {
      for (const entries of [[], [failed], [payment()], [refunded]]) {
        const event = first(needsOperator, ...entries);
        assert.deepEqual([event?.callOutcome, event?.externalId], [outcome, "order-1"]);
        assert.equal(event?.receivedAt?.seconds, 1n);
      }
    });

    it(`is the successful payment despite call outcome ${outcome}`, () => {
      assert.equal(first(needsOperator, paid), paid.event);
    });
  }

  it("is the attempt once the call's outcome is known", () => {
    assert.equal(first(undefined, failed), failed.event);
  });
});

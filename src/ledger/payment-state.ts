import { type Event, EventKind } from "../gen/payments/v1/event_pb.ts";
import { type PaymentOperation, PaymentState } from "../gen/payments/v1/payment_pb.ts";
import { PayoutState } from "../gen/payments/v1/payout_pb.ts";
import type { Kind } from "../model/kinds.ts";
import { operationNames } from "./entry.ts";
import type { Fact, Facts } from "./log.ts";

/**
 * Computes the state of a payment from all operations of its external_id: is it paid? Only this
 * function decides that. The result depends on the set of operations alone, not on their order.
 *
 * - A `cancel` takes back the success of its payment_id. If no paying operation has its payment_id,
 *   it takes back every success.
 * - A payment that was made with `confirm: false` is held until a `confirm` succeeds.
 * - Refunds count by their own amounts, each operation_id once. If the amounts cannot be compared
 *   (one is missing, or the currencies differ), the refund counts as partial.
 * - A call without an understood answer makes the state UNKNOWN, unless the payment is proven to be
 *   paid.
 *
 * @param callIsOpen whether a call that moves money has no understood answer
 */
export function paymentState({ operations, holds }: Facts, callIsOpen = false): PaymentState {
  const paying = operations.filter(
    (fact) => payingOperations.has(fact.operation) && !isNamedElsewhere(fact, operations),
  );
  const refunds = operations.filter((fact) => fact.operation === "refund" && succeeded(fact));
  const cancels = operations.filter((fact) => fact.operation === "cancel" && succeeded(fact));
  const cancelsAll = cancels.some(
    ({ subjectId }) => !paying.some((fact) => fact.subjectId === subjectId),
  );
  const authorized = paying.filter(
    (fact) =>
      succeeded(fact) &&
      !cancelsAll &&
      !cancels.some(({ subjectId }) => subjectId === fact.subjectId),
  );
  const confirmed = authorized.filter(({ operation }) => operation === "confirm");
  // A confirmation may be for less than the held amount, so only confirmed amounts count.
  const isHeld = ({ held: own, operation }: Fact) =>
    own ??
    operations.find((one) => isNameless(one) && one.operation === operation)?.held ??
    holds.length > 0;
  const moved = confirmed.length > 0 ? confirmed : authorized.filter((fact) => !isHeld(fact));

  if (authorized.length > 0 && refunds.length > 0) {
    const isAll = isCovered(moved.length > 0 ? moved : authorized, refunds);
    return isAll ? PaymentState.REFUNDED : PaymentState.PARTIALLY_REFUNDED;
  }
  if (moved.length > 0) return PaymentState.PAID;
  if (callIsOpen) return PaymentState.UNKNOWN;
  if (authorized.length > 0) return PaymentState.AUTHORIZED;
  if (paying.some(({ rank }) => rank < 2)) return PaymentState.PENDING;
  if (cancels.length > 0) return PaymentState.CANCELLED;
  if (refunds.length > 0) return PaymentState.PARTIALLY_REFUNDED;
  if (paying.length > 0) return PaymentState.FAILED;
  return PaymentState.UNSPECIFIED;
}

/**
 * Like `paymentState`, for a payout, whose state events carry as the PaymentState of the same name:
 * only `payout` operations and open calls count.
 */
export function payoutState({ operations }: Facts, callIsOpen = false): PaymentState {
  const payouts = operations.filter(({ operation }) => operation === "payout");
  if (payouts.some(succeeded)) return PaymentState.PAID;
  if (callIsOpen) return PaymentState.UNKNOWN;
  if (payouts.some(({ rank }) => rank < 2)) return PaymentState.PENDING;
  return payouts.length > 0 ? PaymentState.FAILED : PaymentState.UNSPECIFIED;
}

/** The states that a payout can have, in both forms. */
const payoutStates: ReadonlyMap<PaymentState, PayoutState> = new Map([
  [PaymentState.UNSPECIFIED, PayoutState.UNSPECIFIED],
  [PaymentState.PENDING, PayoutState.PENDING],
  [PaymentState.PAID, PayoutState.PAID],
  [PaymentState.FAILED, PayoutState.FAILED],
  [PaymentState.UNKNOWN, PayoutState.UNKNOWN],
]);

/** The PaymentState of the same name. */
export function stateOfPayout(state: PayoutState): PaymentState {
  return [...payoutStates].find(([, own]) => own === state)?.[0] ?? PaymentState.UNSPECIFIED;
}

const ofKinds: Readonly<Record<Kind, { stateOf: typeof paymentState; own: typeof payoutStates }>> =
  {
    [EventKind.PAYMENT]: { stateOf: paymentState, own: new Map() },
    [EventKind.PAYOUT]: { stateOf: payoutState, own: payoutStates },
  };

/** The state of a payment or payout, as its events carry it. */
export function stateAfter(kind: Kind, facts: Facts, callIsOpen = false): PaymentState {
  return ofKinds[kind].stateOf(facts, callIsOpen);
}

/** The same in both forms that events have. */
export function statesAfter(
  kind: Kind,
  facts: Facts,
  callIsOpen = false,
): Pick<Event, "state" | "payoutState"> {
  const state = stateAfter(kind, facts, callIsOpen);
  return { state, payoutState: ofKinds[kind].own.get(state) ?? PayoutState.UNSPECIFIED };
}

/** The states that a payment or payout can have, as its events carry them. */
export const statesOf: Readonly<Record<Kind, readonly PaymentState[]>> = {
  [EventKind.PAYMENT]: Object.values(PaymentState).filter((value) => typeof value === "number"),
  [EventKind.PAYOUT]: [...payoutStates.keys()],
};

/** Operations that pay. Refunds, cancellations and look-ups do not. */
export const payingOperations: ReadonlySet<string> = new Set([
  "payment",
  "recurrent",
  "confirm",
  "payout",
]);

/** Whether a payment's operation pays. One that the service did not send counts as a payment. */
export function isPayingOperation(operation: PaymentOperation | undefined): boolean {
  return !operation || payingOperations.has(operationNames[operation] ?? "");
}

export function succeeded({ status }: Fact): boolean {
  return status === "success";
}

/** An answer that named no payment tells of the one that succeeded, which counts once. */
function isNamedElsewhere(fact: Fact, all: readonly Fact[]): boolean {
  const isIt = (one: Fact) => !isNameless(one) && one.operation === fact.operation;
  return isNameless(fact) && all.some((one) => isIt(one) && succeeded(one));
}

function isNameless({ subjectId }: Fact): boolean {
  return subjectId === "";
}

/** Whether the refunds are known to cover all that was paid. */
function isCovered(successes: readonly Fact[], refunds: readonly Fact[]): boolean {
  const [total, refunded] = [sumOf(successes), sumOf(refunds)];
  if (!total || !refunded || total.currency !== refunded.currency) return false;
  return refunded.units >= total.units;
}

/**
 * The sum in millionths, the finest unit of the contract's decimals; undefined if an amount is not
 * known or the currencies differ.
 */
function sumOf(facts: readonly Fact[]): { units: bigint; currency: string } | undefined {
  let units = 0n;
  // The spec does not say in which case the service writes a code.
  const codeOf = (fact: Fact | undefined) => (fact?.currency ?? "").toUpperCase();
  const currency = codeOf(facts[0]);
  for (const fact of facts) {
    const match = /^(\d{1,30})(?:\.(\d{1,6})0*)?$/.exec(fact.amount ?? "");
    if (!match || codeOf(fact) !== currency) return undefined;
    units += BigInt((match[1] ?? "") + (match[2] ?? "").padEnd(6, "0"));
  }
  return { units, currency };
}

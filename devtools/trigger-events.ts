import type { Resource } from "../src/model/kinds.ts";
import { type BodyValues, paymentCallback, payoutCallback } from "./callback-bodies.ts";
import { cards, type Happened, type SandboxRun } from "./trigger-sandbox.ts";

/** An event that `trigger` can make happen, and the ways to do it. */
export interface Triggered {
  readonly name: string;
  readonly summary: string;
  /** Makes it happen by real calls through the gateway; undefined if no call can. */
  readonly sandbox?: (run: SandboxRun) => Promise<Happened>;
  /** Makes it happen by signed callbacks; undefined if no callback can. */
  readonly callback?: CallbackPlan;
}

export interface CallbackPlan {
  readonly kind: Resource;
  /** In the order of sending. */
  readonly bodies: (values: BodyValues) => readonly object[];
  /** Sent with a wrong signature: the gateway must answer 401. */
  readonly forged?: true;
}

type Outcome = Parameters<typeof paymentCallback>[1];

const succeeded = { status: "success", code: "transaction_successful" } as const;
const pending = { status: "pending", code: "pending" } as const;
const noFunds = { status: "failure", code: "insufficient_funds" } as const;

function payments(
  ...outcomes: (Partial<Outcome> & Pick<Outcome, "status" | "code">)[]
): CallbackPlan {
  return {
    kind: "payments",
    bodies: (values) =>
      outcomes.map((one) => paymentCallback(values, { operation: "payment", ...one })),
  };
}

function payouts(outcome: Parameters<typeof payoutCallback>[1]): CallbackPlan {
  return { kind: "payouts", bodies: (values) => [payoutCallback(values, outcome)] };
}

/** All events of `trigger`, in the order of `trigger --list`. */
export const triggeredEvents: readonly Triggered[] = [
  {
    name: "payment.success",
    summary: "a payment that succeeds",
    sandbox: (run) => run.payment(cards.success),
    callback: payments(succeeded),
  },
  {
    name: "payment.failure",
    summary: "a payment that is declined: insufficient_funds",
    sandbox: (run) => run.declined(cards.insufficientFunds),
    callback: payments(noFunds),
  },
  {
    name: "payment.pending",
    summary: "a payment that waits for the customer; the sandbox has a 3DS page for it",
    sandbox: (run) => run.payment(cards.challenge),
    callback: payments({ ...pending, code: "waiting_for_redirect" }),
  },
  {
    name: "payment.delayed",
    summary: "a payment that is pending first and succeeds some seconds later",
    sandbox: (run) => run.payment(cards.delayed),
    callback: payments(pending, succeeded),
  },
  {
    name: "payment.delayed-failure",
    summary: "a payment that is pending first and is declined some seconds later",
    sandbox: (run) => run.payment(cards.delayedDecline),
    callback: payments(pending, { status: "failure", code: "transaction_declined" }),
  },
  {
    name: "payment.duplicate",
    summary: "a payment whose callback comes three times",
    sandbox: (run) => run.payment(cards.duplicate),
    callback: payments(succeeded, succeeded, succeeded),
  },
  {
    name: "payment.reordered",
    summary: "a payment whose success is told before an earlier pending",
    sandbox: (run) => run.payment(cards.reordered),
    callback: payments(succeeded, pending),
  },
  {
    name: "payment.unknown",
    summary: "a payment whose answer is lost: its outcome is unknown until it is looked up",
    sandbox: (run) => run.unanswered(cards.lost),
  },
  {
    name: "confirm.success",
    summary: "a payment that is held first and then confirmed",
    sandbox: (run) => run.confirmed(),
    callback: payments({ ...succeeded, operation: "confirm" }),
  },
  {
    name: "cancel.success",
    summary: "a payment that is held first and then released",
    sandbox: (run) => run.cancelled(),
    callback: payments({ ...succeeded, operation: "cancel" }),
  },
  {
    name: "recurrent.success",
    summary: "a payment made from an earlier one",
    sandbox: (run) => run.recurrent(),
    callback: payments({ ...succeeded, operation: "recurrent" }),
  },
  {
    name: "refund.success",
    summary: "a payment that is given back (--payment-id: of a payment that was made)",
    sandbox: (run) => run.refunded(),
    callback: payments({ status: "success", code: "refund_successful", operation: "refund" }),
  },
  {
    name: "refund.failure",
    summary: "a refund that fails: insufficient_funds_for_refund",
    callback: payments({
      status: "failure",
      code: "insufficient_funds_for_refund",
      operation: "refund",
    }),
  },
  {
    name: "payment.unrecognized",
    summary: "a payment with a status that the gateway does not know: expired, after pending",
    callback: payments(pending, { status: "expired", code: "session_expired" }),
  },
  {
    name: "chargeback.unrecognized",
    summary: "an operation that the gateway does not know: chargeback",
    callback: payments({ ...succeeded, operation: "chargeback" }),
  },
  {
    name: "payout.success",
    summary: "a payout that succeeds",
    sandbox: (run) => run.payout(cards.success),
    callback: payouts(succeeded),
  },
  {
    name: "payout.failure",
    summary: "a payout that fails: insufficient_funds",
    sandbox: (run) => run.payout(cards.insufficientFunds),
    callback: payouts(noFunds),
  },
  {
    name: "payout.pending",
    summary: "a payout that is pending; no callback tells its end",
    sandbox: (run) => run.payout(cards.lostCallback),
    callback: payouts(pending),
  },
  {
    name: "callback.unreadable",
    summary: "a callback that is signed and not understood: a dead letter",
    callback: { kind: "payments", bodies: () => [{ made_by: "payments-gateway trigger" }] },
  },
  {
    name: "callback.forged",
    summary: "a callback whose signature is wrong: refused",
    callback: { ...payments(succeeded), forged: true },
  },
];

/** Finds an event by name; `refund` is short for `refund.success`. */
export function findTriggered(name: string): Triggered | undefined {
  return triggeredEvents.find((event) => event.name === name || event.name === `${name}.success`);
}

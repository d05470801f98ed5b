import type { Payout } from "../gen/payments/v1/payout_pb.ts";

/** The service's final payout statuses, in lower case. Its specification does not list them. */
export interface PayoutEnds {
  readonly success: ReadonlySet<string>;
  readonly failure: ReadonlySet<string>;
}

export const defaultPayoutEnds: PayoutEnds = {
  success: new Set(["success"]),
  failure: new Set(["failure"]),
};

/** The words for an end by which each payout was read. */
const endsOf = new WeakMap<Payout, PayoutEnds>();

/** Records by which words a payout's status is final. A payout of which none are has the default's. */
export function noteEnds(payout: Payout, ends: PayoutEnds): void {
  endsOf.set(payout, ends);
}

/** How a payout ended; undefined while it has not. */
export function endOf(payout: Payout): "success" | "failure" | undefined {
  const { success, failure } = endsOf.get(payout) ?? defaultPayoutEnds;
  const given = wordOf(payout.status);
  return success.has(given) ? "success" : failure.has(given) ? "failure" : undefined;
}

/** A status as its words are compared: in lower case, without white space around it. */
function wordOf(status = ""): string {
  return status.trim().toLowerCase();
}

/** Whether the gateway knows a payout's status: an end, `init`, `pending`, or none. */
export function isKnownStatus(status: string, ends: PayoutEnds): boolean {
  const given = wordOf(status);
  return payoutSteps.has(given) || ends.success.has(given) || ends.failure.has(given);
}

/** Statuses that end no payout, in lower case; empty: none was sent. */
export const payoutSteps: ReadonlySet<string> = new Set(["", "init", "pending"]);

/** The service's final payout statuses, in lower case. Its specification does not list them. */
export interface PayoutEnds {
  readonly success: ReadonlySet<string>;
  readonly failure: ReadonlySet<string>;
}

export const defaultPayoutEnds: PayoutEnds = {
  success: new Set(["success"]),
  failure: new Set(["failure"]),
};

/** Whether the gateway knows a payout's status: an end, `init`, `pending`, or none. */
export function isKnownStatus(status: string, ends: PayoutEnds): boolean {
  const given = status.trim().toLowerCase();
  return steps.has(given) || ends.success.has(given) || ends.failure.has(given);
}

const steps: ReadonlySet<string> = new Set(["", "init", "pending"]);

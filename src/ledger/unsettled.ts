import { isUnknown, type Unsettled, type UnsettledIntent } from "./intents.ts";

/** How many intents are considered, of those that are due first and of those given up last each. */
export const maxInspected = 1_000;

/**
 * Intents of unknown or pending outcome, the most urgent first: given up, unknown, pending. Each
 * group has its oldest first.
 */
export function unsettledOf(
  all: readonly UnsettledIntent[],
  limit: number,
  now: number,
): Unsettled {
  const intents = all
    .filter((intent) => intent.state === "pending" || isUnknown(intent, now))
    .sort((a, b) => urgency(b) - urgency(a) || a.startedAtMs - b.startedAtMs);
  return { intents: intents.slice(0, limit), total: intents.length };
}

function urgency({ needsOperator, state }: UnsettledIntent): number {
  if (needsOperator) return 2;
  return state === "pending" ? 0 : 1;
}

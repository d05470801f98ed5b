import type { Metrics } from "../telemetry/metrics.ts";

/** Where the account's tokens come from; without Redis nobody says. */
export async function budgetSourceOf({ bucketShared }: Metrics, account: string) {
  const { values } = await bucketShared.get();
  const shared = values.find(({ labels }) => labels.account === account);
  if (!shared) return "own";
  return shared.value === 1 ? "shared" : "share";
}

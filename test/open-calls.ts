import type { Intent, IntentStore } from "../src/ledger/intents.ts";

/** The calls of an external_id that are open. */
export async function openCalls(
  store: Pick<IntentStore, "known">,
  ...of: Parameters<IntentStore["known"]>
): Promise<readonly Intent[]> {
  return (await store.known(...of)).intents;
}

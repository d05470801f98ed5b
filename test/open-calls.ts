import type { Intent } from "../src/ledger/intents.ts";
import type { Ledger } from "../src/ledger/ledger.ts";

/** The calls of an external_id that are open. */
export async function openCalls(
  store: Pick<Ledger, "known">,
  ...of: Parameters<Ledger["known"]>
): Promise<readonly Intent[]> {
  return (await store.known(...of)).calls;
}

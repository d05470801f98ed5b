import { EventKind } from "../src/gen/payments/v1/event_pb.ts";
import type { Intent } from "../src/ledger/intents.ts";
import type { Ledger } from "../src/ledger/ledger.ts";

/** The calls of a payment that are open. */
export async function openCalls(
  store: Pick<Ledger, "known">,
  account: string,
  externalId = "order",
): Promise<readonly Intent[]> {
  return (await store.known(account, EventKind.PAYMENT, externalId)).calls;
}

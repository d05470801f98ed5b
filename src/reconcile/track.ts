import { isOperationOf, methodOf } from "../ledger/evidence.ts";
import type { IntentStore } from "../ledger/intents.ts";
import type { EventLog, Unfinished } from "../ledger/log.ts";

/**
 * Makes intents for operations that have been pending for `afterMs` and have none: of payments and
 * payouts that no call of this gateway made, or whose intent is no longer stored. Looks into at
 * most `limit` operations at a time.
 * @returns false if there may be more
 */
export async function trackPending(
  {
    log,
    intents,
    afterMs,
  }: { readonly log: EventLog; readonly intents: IntentStore; readonly afterMs: number },
  account: string,
  limit: number,
): Promise<boolean> {
  const inHands: Unfinished[] = [];
  for (const operation of await log.unfinished(account, afterMs, limit)) {
    const method = methodOf(operation.operation);
    const { intents: open } = await intents.known(account, operation.kind, operation.externalId);
    const isKnown = open.some(
      ({ method, subjectId }) =>
        subjectId === operation.subjectId && isOperationOf(method, operation),
    );
    // The store tracks too many already: the log returns the rest again next time.
    if (method && !isKnown && !(await intents.track(account, { ...operation, method }))) break;
    inHands.push(operation);
  }
  await log.dismiss(account, inHands);
  return inHands.length < limit;
}

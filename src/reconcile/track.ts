import type { Unfinished } from "../events/log.ts";
import { methodOf, operations } from "../intents/evidence.ts";
import type { CallStores } from "../intents/settle.ts";

/**
 * Takes on what stays pending for `afterMs`, as events tell, and is nobody's to look after: payments
 * and payouts that no call here made, or whose call is forgotten. So many are looked into at a time.
 * @returns whether that was all for now
 */
export async function trackPending(
  { log, intents, afterMs }: CallStores & { readonly afterMs: number },
  account: string,
  limit: number,
): Promise<boolean> {
  const inHands: Unfinished[] = [];
  for (const operation of await log.unfinished(account, afterMs, limit)) {
    const method = methodOf(operation.operation);
    const open = await intents.open(account, operation.kind, operation.externalId);
    const isKnown = open.some(
      ({ method, subjectId }) =>
        subjectId === operation.subjectId && operations[method].includes(operation.operation),
    );
    // Too many: those who wait are told of again.
    if (method && !isKnown && !(await intents.track(account, { ...operation, method }))) break;
    inHands.push(operation);
  }
  await log.dismiss(account, inHands);
  return inHands.length < limit;
}

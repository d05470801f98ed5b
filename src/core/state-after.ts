import { noFacts, readFacts, storedFact } from "../events/facts.ts";
import { openCallsOf, outcomeFlags } from "../intents/settle.ts";
import type { Kind } from "../model/kinds.ts";
import type { After, Context } from "./context.ts";
import type { Call } from "./core.ts";
import { unlessAborted } from "./unless-aborted.ts";

/**
 * Returns what is known of an external_id after a call that moves money was answered. It never
 * throws: the money has moved, so the caller gets a state whatever becomes of the store. When the
 * store fails, or the call's signal aborts first, the facts come from the answer alone.
 * @param answer the object that the core returned, not a copy of it
 */
export async function knownAfter(
  context: Context,
  answer: object,
  { kind, externalId }: { kind: Kind; externalId: string },
  call: Pick<Call, "caller" | "signal">,
): Promise<After> {
  const waited = context.waited.get(answer);
  if (waited) return waited;
  const { entry, appended } = context.recorded.get(answer) ?? {};
  const byItself = entry ? readFacts([storedFact(entry, 0)], noFacts) : noFacts;
  if (entry && !appended) return { facts: byItself, callIsOpen: false, cursor: "" };
  try {
    const { account } = call.caller;
    call.signal.throwIfAborted();
    const known = openCallsOf(context, account, kind, externalId);
    const { openCalls, snapshot } = await unlessAborted(known, call.signal);
    const { outcomeUnknown } = outcomeFlags(openCalls);
    const { facts = byItself, cursor = "" } = snapshot ?? {};
    return { facts, callIsOpen: outcomeUnknown, cursor };
  } catch {
    return { facts: byItself, callIsOpen: false, cursor: "" };
  }
}

import { noFacts, readFacts, storedFact } from "../events/facts.ts";
import { openCallsOf, outcomeFlags } from "../intents/settle.ts";
import type { Kind } from "../model/kinds.ts";
import type { After, Context } from "./context.ts";
import type { Call } from "./core.ts";
import { unlessAborted } from "./unless-aborted.ts";

/**
 * What is known of an external_id once a call that moves money was answered. It never fails: the money
 * has moved, and its caller is told so whatever becomes of the store. Where that cannot be asked while
 * the caller waits, the answer speaks for itself.
 * @param answer as the core gave it
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

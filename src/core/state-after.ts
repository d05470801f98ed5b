import { noFacts, readFacts, storedFact } from "../ledger/facts.ts";
import { openCallsOf, outcomeFlags } from "../ledger/open-calls.ts";
import type { Kind } from "../model/kinds.ts";
import type { After, Context } from "./context.ts";
import type { Call } from "./core.ts";
import { timeLeftMs } from "./time-left.ts";
import { unlessAborted } from "./unless-aborted.ts";

/** Longest time that an answer waits for a store that is silent, in milliseconds. */
const maxReadMs = 5_000;

/**
 * Returns what is known of an external_id after a call that moves money was answered. It never
 * throws: the money has moved, so the caller gets a state whatever becomes of the store. When the
 * store fails, is silent for long or until shortly before the caller's deadline, or the call's
 * signal aborts first, the facts come from the answer alone.
 * @param answer the object that the core returned, not a copy of it
 */
export async function knownAfter(
  context: Context,
  answer: object,
  { kind, externalId }: { kind: Kind; externalId: string },
  call: Pick<Call, "caller" | "signal" | "deadlineMs">,
): Promise<After> {
  const waited = context.waited.get(answer);
  if (waited) return waited;
  const { entry, appended } = context.recorded.get(answer) ?? {};
  const byItself = entry ? readFacts([storedFact(entry, 0)], noFacts) : noFacts;
  if (entry && !appended) return { facts: byItself, callIsOpen: false, cursor: "" };
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), Math.min(timeLeftMs(call), maxReadMs));
  try {
    const { account } = call.caller;
    const signal = AbortSignal.any([call.signal, over.signal]);
    signal.throwIfAborted();
    const known = openCallsOf(context, account, kind, externalId);
    const { openCalls, snapshot } = await unlessAborted(known, signal);
    const { outcomeUnknown } = outcomeFlags(openCalls);
    const { facts = byItself, cursor = "" } = snapshot ?? {};
    return { facts, callIsOpen: outcomeUnknown, cursor };
  } catch {
    return { facts: byItself, callIsOpen: false, cursor: "" };
  } finally {
    clearTimeout(timer);
  }
}

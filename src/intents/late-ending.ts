import { callOutcomeEntry } from "../events/call-outcome.ts";
import type { EventLog } from "../events/log.ts";
import { CallOutcome } from "../gen/payments/v1/event_pb.ts";
import type { Ending, Intent } from "./store.ts";

/**
 * How an ending found its call: `late` if the call's outcome is noted as unknown, and then the ending is
 * not written before it is published; undefined if the call is not open.
 */
export type Found = "inTime" | "late" | undefined;

/** Hears of an ending that comes late. */
export type OnLateEnding = (account: string, intent: Intent, ending: Ending) => Promise<unknown>;

/**
 * The write of an ending, for an outbox that repeats it until it succeeds. A late ending is published
 * first: if this process dies in between, the call is still open, and the reconciler settles it.
 */
export function endingWrite(
  write: (isPublished: boolean) => Promise<Found>,
  publish: () => Promise<unknown> | undefined,
): () => Promise<void> {
  let isPublished = false;
  return async () => {
    if ((await write(isPublished)) !== "late") return;
    await publish();
    isPublished = true;
    await write(isPublished);
  };
}

/**
 * Tells those who watch what became of a call whose own process could not write its end in time, so
 * that others told them that its outcome is unknown.
 */
export function publishLateEndings(log: Pick<EventLog, "append">): OnLateEnding {
  return async (account, intent, ending) => {
    // Who keeps the key is no caller, and has told what it found.
    if (ending.state === "unknown" || ending.key === "keep") return;
    const outcome = ending.key === "free" ? CallOutcome.NOT_DONE : CallOutcome.SETTLED;
    await log.append(account, callOutcomeEntry(intent, outcome));
  };
}

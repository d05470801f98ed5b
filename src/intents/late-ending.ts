import { callOutcomeEntry } from "../events/call-outcome.ts";
import type { EventLog } from "../events/log.ts";
import { CallOutcome } from "../gen/payments/v1/event_pb.ts";
import type { Ending, Intent } from "./store.ts";

/**
 * How the store had a call when its ending came. `late`: its outcome was already stored as unknown, and
 * the ending is not written until it is published; undefined: the store did not have the call.
 */
export type Found = "inTime" | "late" | undefined;

/** Called for an ending that comes late. */
export type OnLateEnding = (account: string, intent: Intent, ending: Ending) => Promise<unknown>;

/**
 * An outbox write of an ending. A late ending is published before it is written: if this process dies
 * in between, the call stays open, and the reconciler settles it.
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
 * Publishes the outcome of a call whose own process could not write its ending in time, so that
 * another process published it as UNKNOWN.
 */
export function publishLateEndings(log: Pick<EventLog, "append">): OnLateEnding {
  return async (account, intent, ending) => {
    // `key: "keep"` means that events or the reconciler ended the call, not its own process: the
    // outcome is already published.
    if (ending.state === "unknown" || ending.key === "keep") return;
    const outcome = ending.key === "free" ? CallOutcome.NOT_DONE : CallOutcome.SETTLED;
    await log.append(account, callOutcomeEntry(intent, outcome));
  };
}

import { callOutcomeEntry } from "../events/call-outcome.ts";
import type { EventLog } from "../events/log.ts";
import { CallOutcome } from "../gen/payments/v1/event_pb.ts";
import type { Ending, Intent } from "./store.ts";

/** How an ending found its call: `late` where its outcome had been noted as unknown; undefined: not at all. */
export type Found = "inTime" | "late" | undefined;

/** Hears of an ending that comes late. */
export type OnLateEnding = (account: string, intent: Intent, ending: Ending) => Promise<unknown>;

/** The write of an ending for an outbox, with what follows from one that is late: each is done once. */
export function endingWrite(
  write: () => Promise<Found>,
  onLate: () => Promise<unknown> | undefined,
): () => Promise<void> {
  let isWritten = false;
  let isLate = false;
  return async () => {
    if (!isWritten) isLate = (await write()) === "late";
    isWritten = true;
    if (isLate) await onLate();
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

import type { PayoutEnds } from "../events/entry.ts";
import type { Appended, EventLog } from "../events/log.ts";
import { parseCallback } from "./parse-callback.ts";

/**
 * What became of a dead letter: stored, known already, still not understood, not there, or locked:
 * sealed with a password that is no longer accepted.
 */
export type Replayed = Appended["outcome"] | "not_understood" | "not_found" | "locked";

/**
 * Tries a dead letter again: understood now, it becomes an event and is forgotten as a letter; else
 * it stays. Its signature was right when it came.
 */
export async function replay(
  log: EventLog,
  account: string,
  letterId: string,
  payoutEnds?: PayoutEnds,
): Promise<Replayed> {
  const letter = await log.deadLetter(account, letterId);
  if (!letter) return "not_found";
  if (letter.body === undefined) return "locked";
  const { entry } = parseCallback(
    letter.kind,
    Buffer.from(letter.body, "base64"),
    undefined,
    payoutEnds,
  );
  if (!entry) return "not_understood";
  const { outcome } = await log.append(account, entry);
  await log.removeDeadLetter(account, letterId);
  return outcome;
}

import type { Ledger } from "../ledger/ledger.ts";
import type { Appended } from "../ledger/log.ts";
import type { PayoutEnds } from "../model/payout-statuses.ts";
import { parseCallback } from "./parse-callback.ts";

/**
 * The outcome for a dead letter: `not_understood` if its body still cannot be parsed, `locked` if
 * it was encrypted with a password that is no longer accepted.
 */
export type Replayed = Appended["outcome"] | "not_understood" | "not_found" | "locked";

/**
 * Parses a dead letter again. If that succeeds now, appends the event and removes the letter; else
 * the letter stays. The signature was checked when the callback arrived.
 */
export async function replay(
  ledger: Ledger,
  account: string,
  letterId: string,
  payoutEnds?: PayoutEnds,
): Promise<Replayed> {
  const letter = await ledger.letters.deadLetter(account, letterId);
  if (!letter) return "not_found";
  if (letter.body === undefined) return "locked";
  const { entry } = parseCallback(letter.kind, Buffer.from(letter.body, "base64"), { payoutEnds });
  if (!entry) return "not_understood";
  const { outcome } = await ledger.append(account, entry);
  await ledger.letters.removeDeadLetter(account, letterId);
  return outcome;
}

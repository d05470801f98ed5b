import type { EventLog } from "../../src/ledger/log.ts";
import type { DeadLettersOptions, StoredDeadLetter } from "../../src/stores/dead-letter.ts";

/** All dead letters of an account. */
export async function keptLettersOf(
  log: EventLog,
  account: string,
  options?: DeadLettersOptions,
): Promise<StoredDeadLetter[]> {
  const kept: StoredDeadLetter[] = [];
  for await (const letter of log.letters.deadLetters(account, options)) kept.push(letter);
  return kept;
}

/** All dead letters of an account, without their places. */
export async function lettersOf(
  log: EventLog,
  account: string,
  options?: DeadLettersOptions,
): Promise<Omit<StoredDeadLetter, "place">[]> {
  const kept = await keptLettersOf(log, account, options);
  return kept.map(({ place: _, ...letter }) => letter);
}

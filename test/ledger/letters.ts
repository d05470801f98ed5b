import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import type {
  DeadLetter,
  DeadLettersOptions,
  StoredDeadLetter,
} from "../../src/ledger/dead-letters.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";

export function letter(id: string, body = Buffer.from(id).toString("base64")): DeadLetter {
  const reason = "the body is not JSON";
  return { id, kind: EventKind.PAYMENT, body, reason, receivedAtMs: 1_700_000_000_000 };
}

/** All dead letters of an account. */
export async function keptLettersOf(
  log: Ledger,
  account: string,
  options?: DeadLettersOptions,
): Promise<StoredDeadLetter[]> {
  const kept: StoredDeadLetter[] = [];
  for await (const letter of log.letters.deadLetters(account, options)) kept.push(letter);
  return kept;
}

/** All dead letters of an account, without their places. */
export async function lettersOf(
  log: Ledger,
  account: string,
  options?: DeadLettersOptions,
): Promise<Omit<StoredDeadLetter, "place">[]> {
  const kept = await keptLettersOf(log, account, options);
  return kept.map(({ place: _, ...letter }) => letter);
}

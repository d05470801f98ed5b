import { GatewayError } from "../errors.ts";
import type { DeadLetter } from "./log.ts";

/** Dead letters that one account may have, and the characters of their bodies together. */
const maxLetters = 10_000;
const maxCharacters = 64 * 1024 * 1024;

/**
 * Dead letters in memory. When an account's share is full the next one is refused: to drop an old
 * one would lose what was acknowledged.
 */
export class MemoryDeadLetters {
  readonly #accounts = new Map<string, Map<string, DeadLetter>>();

  /** @throws GatewayError UNAVAILABLE when the account's share is full. */
  bury(account: string, letter: DeadLetter): void {
    const letters = this.#accounts.get(account) ?? new Map<string, DeadLetter>();
    if (letters.has(letter.id)) return;
    let characters = letter.body.length;
    for (const { body } of letters.values()) characters += body.length;
    if (letters.size >= maxLetters || characters > maxCharacters) {
      throw new GatewayError("UNAVAILABLE", "there is no room for another dead letter", {
        reason: "DEAD_LETTERS_FULL",
      });
    }
    this.#accounts.set(account, letters.set(letter.id, letter));
  }

  of(account: string): DeadLetter[] {
    return [...(this.#accounts.get(account)?.values() ?? [])];
  }

  count(account: string): number {
    return this.#accounts.get(account)?.size ?? 0;
  }

  exhume(account: string, id: string): void {
    this.#accounts.get(account)?.delete(id);
  }
}

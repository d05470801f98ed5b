import { GatewayError } from "../../errors.ts";
import type { DeadLetter, DeadLettersOptions, StoredDeadLetter } from "../dead-letter.ts";
import { numberOf } from "../dead-letter.ts";

/** Most dead letters of one account, and most characters of their bodies together. */
const maxLetters = 10_000;
const maxCharacters = 64 * 1024 * 1024;

/**
 * Dead letters in memory. When an account's share is full, new ones are rejected: dropping an old
 * one would lose a callback that was acknowledged.
 */
export class MemoryDeadLetters {
  readonly #accounts = new Map<string, Map<string, PlacedLetter>>();
  #added = 0;

  /** @throws GatewayError UNAVAILABLE when the account's share is full. */
  async addDeadLetter(account: string, letter: DeadLetter): Promise<void> {
    const letters = this.#accounts.get(account) ?? new Map<string, PlacedLetter>();
    if (letters.has(letter.id)) return;
    let characters = letter.body.length;
    for (const { body } of letters.values()) characters += body.length;
    if (letters.size >= maxLetters || characters > maxCharacters) {
      throw new GatewayError("UNAVAILABLE", "the dead letters are full: replay or discard some", {
        reason: "DEAD_LETTERS_FULL",
      });
    }
    this.#added += 1;
    this.#accounts.set(account, letters.set(letter.id, { ...letter, place: `${this.#added}` }));
  }

  async *deadLetters(
    account: string,
    { newestFirst = false, behind }: DeadLettersOptions = {},
  ): AsyncGenerator<StoredDeadLetter> {
    const from = numberOf(behind);
    const letters = this.#accounts.get(account);
    const all = [...(letters?.values() ?? [])];
    if (newestFirst) all.reverse();
    for (const letter of all) {
      const place = Number(letter.place);
      const isBehind = from === undefined || (newestFirst ? place < from : place > from);
      if (isBehind && letters?.has(letter.id)) yield letter;
    }
  }

  async deadLetter(account: string, id: string): Promise<StoredDeadLetter | undefined> {
    return this.#accounts.get(account)?.get(id);
  }

  async countDeadLetters(account: string): Promise<number> {
    return this.#accounts.get(account)?.size ?? 0;
  }

  async removeDeadLetter(account: string, id: string): Promise<boolean> {
    return this.#accounts.get(account)?.delete(id) ?? false;
  }
}

interface PlacedLetter extends DeadLetter {
  readonly place: string;
}

import { GatewayError } from "../../errors.ts";
import type { Seal } from "../../secrets/seal.ts";
import type { DeadLetter, DeadLettersOptions, StoredDeadLetter } from "../dead-letter.ts";
import { numberOf } from "../dead-letter.ts";
import type { LettersBound } from "./operations.ts";
import type { LetterRow } from "./rows.ts";
import type { StoreThread } from "./store-thread.ts";

export interface SqliteDeadLettersOptions {
  readonly thread: StoreThread;
  /** Encrypts an account's letters. */
  readonly sealOf: (account: string) => Seal;
  /** A letter could not be decrypted: it is returned without its body. */
  readonly onLocked: (account: string) => void;
  /** Limits of an account. Default: 10,000 letters, and 64 MiB together. */
  readonly letters?: LettersBound | undefined;
}

/** Small, since a body may have 1 MiB. */
const pageSize = 20;

/** Dead letters in the embedded store. Their bodies are encrypted whole, whatever they contain. */
export class SqliteDeadLetters {
  readonly #options: SqliteDeadLettersOptions;

  constructor(options: SqliteDeadLettersOptions) {
    this.#options = options;
  }

  /** @throws GatewayError UNAVAILABLE when the account's share is full */
  async addDeadLetter(account: string, { receivedAtMs, ...letter }: DeadLetter): Promise<void> {
    const { sealOf, letters: max = { letters: 10_000, bytes: 64 * 1024 * 1024 } } = this.#options;
    const body = sealOf(account).close(Buffer.from(letter.body, "base64"), letter.id);
    const row: Omit<LetterRow, "place"> = { ...letter, receivedMs: receivedAtMs, body };
    if (await this.#run<boolean>("addDeadLetter", account, row, max)) return;
    throw new GatewayError("UNAVAILABLE", "the dead letters are full: replay or discard some", {
      reason: "DEAD_LETTERS_FULL",
    });
  }

  async *deadLetters(
    account: string,
    { newestFirst = false, behind }: DeadLettersOptions = {},
  ): AsyncGenerator<StoredDeadLetter> {
    let from = numberOf(behind);
    for (;;) {
      const rows = await this.#run<LetterRow[]>("letters", account, from, newestFirst, pageSize);
      for (const row of rows) yield this.#read(account, row);
      if (rows.length < pageSize) return;
      from = rows.at(-1)?.place;
    }
  }

  async deadLetter(account: string, id: string): Promise<StoredDeadLetter | undefined> {
    const row = await this.#run<LetterRow | undefined>("letter", account, id);
    return row && this.#read(account, row);
  }

  async countDeadLetters(account: string): Promise<number> {
    return this.#run("countLetters", account);
  }

  async removeDeadLetter(account: string, id: string): Promise<boolean> {
    return this.#run("removeDeadLetter", account, id);
  }

  #read(account: string, row: LetterRow): StoredDeadLetter {
    const { place, id, kind, reason, receivedMs, body: sealed } = row;
    const { sealOf, onLocked } = this.#options;
    const body = sealOf(account).open(sealed, id)?.toString("base64");
    if (body === undefined) onLocked(account);
    return {
      ...{ id, kind, reason, receivedAtMs: receivedMs, place: `${place}` },
      ...(body !== undefined && { body }),
    };
  }

  #run<T>(operation: string, account: string, ...args: unknown[]): Promise<T> {
    return this.#options.thread.run<T>(operation, [account, ...args]);
  }
}

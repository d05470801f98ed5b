import { GatewayError } from "../errors.ts";
import { ask } from "../redis/ask.ts";
import type { RedisClient } from "../redis/connect.ts";
import type { AccountKeys } from "../redis/keys.ts";
import { loadScript } from "../redis/script.ts";
import type { Writer } from "../redis/writer.ts";
import type { Seal } from "../seal/seal.ts";
import type { DeadLetter, KeptLetter } from "./log.ts";

export interface RedisDeadLettersOptions {
  readonly client: RedisClient;
  readonly writer: Writer;
  /** See RedisStoreOptions. */
  readonly touchDuplicates: boolean;
  /** Dead letters that one account may have. Default: 10,000. */
  readonly maxLetters?: number;
  /** Characters that their bodies may have together. Default: 64 Mi. */
  readonly maxCharacters?: number;
}

/** Small, since a body may have a mebibyte. */
const pageSize = 20;

/**
 * Dead letters in Redis, their bodies sealed: whatever is in them. When an account's share is full the next one is refused: to drop an old
 * one would lose what was acknowledged.
 */
export class RedisDeadLetters {
  readonly #options: RedisDeadLettersOptions;

  constructor(options: RedisDeadLettersOptions) {
    this.#options = options;
  }

  /** @throws GatewayError UNAVAILABLE when the account's share is full or Redis is away. */
  async bury(keys: AccountKeys, seal: Seal, letter: DeadLetter): Promise<void> {
    const { writer, touchDuplicates } = this.#options;
    const { maxLetters = 10_000, maxCharacters = 64 * 1024 * 1024 } = this.#options;
    const body = seal.close(Buffer.from(letter.body, "base64"), letter.id).toString("base64");
    const stored: StoredLetter = { ...letter, body, sealed: true };
    const answer = await writer.run(buryLetter, ownKeys(keys), [
      letter.id,
      JSON.stringify(stored),
      `${body.length}`,
      `${maxLetters}`,
      `${maxCharacters}`,
      touchDuplicates ? "1" : "0",
    ]);
    if (answer === "kept") return;
    throw new GatewayError("UNAVAILABLE", "there is no room for another dead letter", {
      reason: "DEAD_LETTERS_FULL",
    });
  }

  /** All of them, the oldest first. */
  async of({ deadLetters, deadLetterOrder }: AccountKeys, seal: Seal): Promise<KeptLetter[]> {
    const { client } = this.#options;
    const ids = await ask(client, () => client.zrange(deadLetterOrder, 0, "-1"));
    const letters: KeptLetter[] = [];
    for (let at = 0; at < ids.length; at += pageSize) {
      const some = ids.slice(at, at + pageSize);
      const page = await ask(client, () => client.hmget(deadLetters, ...some));
      // One that was exhumed meanwhile is none any more.
      for (const text of page) if (text !== null) letters.push(read(JSON.parse(text), seal));
    }
    return letters;
  }

  async count({ deadLetterOrder }: AccountKeys): Promise<number> {
    const { client } = this.#options;
    return ask(client, () => client.zcard(deadLetterOrder));
  }

  async exhume(keys: AccountKeys, id: string): Promise<void> {
    const { client } = this.#options;
    await ask(client, () => exhumeLetter.run(client, ownKeys(keys), [id]));
  }
}

const buryLetter = loadScript(new URL("./bury-letter.lua", import.meta.url));
const exhumeLetter = loadScript(new URL("./exhume-letter.lua", import.meta.url));

/** `body` is base64 of the sealed bytes, or of the body itself where it is not `sealed`. */
interface StoredLetter extends DeadLetter {
  readonly sealed?: true;
}

function read({ sealed, body, ...letter }: StoredLetter, seal: Seal): KeptLetter {
  if (!sealed) return { ...letter, body };
  const opened = seal.open(Buffer.from(body, "base64"), letter.id);
  return opened ? { ...letter, body: opened.toString("base64") } : letter;
}

function ownKeys({ deadLetters, deadLetterOrder, deadLetterSize }: AccountKeys): string[] {
  return [deadLetters, deadLetterOrder, deadLetterSize];
}

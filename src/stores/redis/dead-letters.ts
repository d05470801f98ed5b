import { GatewayError } from "../../errors.ts";
import { ask } from "../../redis/ask.ts";
import type { RedisClient } from "../../redis/connect.ts";
import { type AccountKeys, accountKeys } from "../../redis/keys.ts";
import { loadScript } from "../../redis/script.ts";
import type { Writer } from "../../redis/writer.ts";
import type { Seal } from "../../secrets/seal.ts";
import type { DeadLetter, DeadLettersOptions, StoredDeadLetter } from "../dead-letter.ts";
import { numberOf } from "../dead-letter.ts";

export interface RedisDeadLettersOptions {
  readonly client: RedisClient;
  readonly writer: Writer;
  /** Prefix of all keys. */
  readonly prefix: string;
  /** Encrypts an account's letters. */
  readonly sealOf: (account: string) => Seal;
  /** A known letter is written again, so that a WAIT after it covers the first write. */
  readonly awaitsReplicas: boolean;
  /** A letter could not be decrypted: it is returned without its body. */
  readonly onLocked: (account: string) => void;
  /** Dead letters that one account may have. Default: 10,000. */
  readonly maxLetters?: number;
  /** Characters that their bodies may have together. Default: 64 Mi. */
  readonly maxCharacters?: number;
}

/** Small, since a body may have 1 MiB. */
const pageSize = 20;

/**
 * Dead letters in Redis. Their bodies are encrypted whole, whatever they contain. When an account's
 * share is full, new ones are rejected: dropping an old one would lose a callback that was
 * acknowledged.
 */
export class RedisDeadLetters {
  readonly #options: RedisDeadLettersOptions;

  constructor(options: RedisDeadLettersOptions) {
    this.#options = options;
  }

  /** @throws GatewayError UNAVAILABLE when the account's share is full or Redis is out of reach */
  async addDeadLetter(account: string, letter: DeadLetter): Promise<void> {
    const { writer, awaitsReplicas, sealOf } = this.#options;
    const { maxLetters = 10_000, maxCharacters = 64 * 1024 * 1024 } = this.#options;
    const body = sealOf(account)
      .close(Buffer.from(letter.body, "base64"), letter.id)
      .toString("base64");
    const stored: DeadLetter = { ...letter, body };
    const answer = await writer.run(addDeadLetterScript, ownKeys(this.#keysOf(account)), [
      letter.id,
      JSON.stringify(stored),
      `${body.length}`,
      `${maxLetters}`,
      `${maxCharacters}`,
      awaitsReplicas ? "1" : "0",
    ]);
    if (answer === "kept") return;
    throw new GatewayError("UNAVAILABLE", "the dead letters are full: replay or discard some", {
      reason: "DEAD_LETTERS_FULL",
    });
  }

  /** In the order of their arrival, read page by page. */
  async *deadLetters(
    account: string,
    { newestFirst = false, behind }: DeadLettersOptions = {},
  ): AsyncGenerator<StoredDeadLetter> {
    const { client } = this.#options;
    const { deadLetters, deadLetterOrder: order } = this.#keysOf(account);
    let place = numberOf(behind);
    for (;;) {
      const from = place === undefined ? undefined : `(${place}`;
      const found = await ask(client, () =>
        newestFirst
          ? client.zrevrangebyscore(
              order,
              from ?? "+inf",
              "-inf",
              "WITHSCORES",
              "LIMIT",
              0,
              pageSize,
            )
          : client.zrangebyscore(order, from ?? "-inf", "+inf", "WITHSCORES", "LIMIT", 0, pageSize),
      );
      const ids = found.filter((_, i) => i % 2 === 0);
      const places = found.filter((_, i) => i % 2 === 1);
      if (ids.length === 0) return;
      const page = await ask(client, () => client.hmget(deadLetters, ...ids));
      for (const [i, text] of page.entries()) {
        // Null if the letter was removed after its id was read.
        if (text !== null) yield this.#read(account, text, places[i] ?? "");
      }
      place = Number(places.at(-1));
    }
  }

  async deadLetter(account: string, id: string): Promise<StoredDeadLetter | undefined> {
    const { client } = this.#options;
    const keys = this.#keysOf(account);
    const text = await ask(client, () => client.hget(keys.deadLetters, id));
    const place = await ask(client, () => client.zscore(keys.deadLetterOrder, id));
    return text === null || place === null ? undefined : this.#read(account, text, place);
  }

  async countDeadLetters(account: string): Promise<number> {
    const { client } = this.#options;
    return ask(client, () => client.zcard(this.#keysOf(account).deadLetterOrder));
  }

  async removeDeadLetter(account: string, id: string): Promise<boolean> {
    const { client } = this.#options;
    const on = ownKeys(this.#keysOf(account));
    return (await ask(client, () => removeDeadLetterScript.run(client, on, [id]))) === 1;
  }

  #read(account: string, text: string, place: string): StoredDeadLetter {
    const { sealOf, onLocked } = this.#options;
    const { body, ...letter } = JSON.parse(text) as DeadLetter;
    const opened = sealOf(account).open(Buffer.from(body, "base64"), letter.id);
    if (!opened) onLocked(account);
    return { ...letter, ...(opened && { body: opened.toString("base64") }), place };
  }

  #keysOf(account: string): AccountKeys {
    return accountKeys(this.#options.prefix, account);
  }
}

const addDeadLetterScript = loadScript(new URL("./add-dead-letter.lua", import.meta.url));
const removeDeadLetterScript = loadScript(new URL("./remove-dead-letter.lua", import.meta.url));

function ownKeys({ deadLetters, deadLetterOrder, deadLetterSize }: AccountKeys): string[] {
  return [deadLetters, deadLetterOrder, deadLetterSize];
}

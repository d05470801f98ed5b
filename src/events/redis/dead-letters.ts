import { GatewayError } from "../../errors.ts";
import { ask } from "../../redis/ask.ts";
import type { RedisClient } from "../../redis/connect.ts";
import type { AccountKeys } from "../../redis/keys.ts";
import { loadScript } from "../../redis/script.ts";
import type { Writer } from "../../redis/writer.ts";
import type { Seal } from "../../secrets/seal.ts";
import { numberOf } from "../letter-place.ts";
import type { DeadLetter, DeadLettersOptions, StoredDeadLetter } from "../log.ts";

export interface RedisDeadLettersOptions {
  readonly client: RedisClient;
  readonly writer: Writer;
  /** See `awaitsReplicas` of RedisStoreOptions. */
  readonly touchDuplicates: boolean;
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
  async addDeadLetter(keys: AccountKeys, seal: Seal, letter: DeadLetter): Promise<void> {
    const { writer, touchDuplicates } = this.#options;
    const { maxLetters = 10_000, maxCharacters = 64 * 1024 * 1024 } = this.#options;
    const body = seal.close(Buffer.from(letter.body, "base64"), letter.id).toString("base64");
    const stored: StoredLetter = { ...letter, body, sealed: true };
    const answer = await writer.run(addDeadLetterScript, ownKeys(keys), [
      letter.id,
      JSON.stringify(stored),
      `${body.length}`,
      `${maxLetters}`,
      `${maxCharacters}`,
      touchDuplicates ? "1" : "0",
    ]);
    if (answer === "kept") return;
    throw new GatewayError("UNAVAILABLE", "the dead letters are full: replay or discard some", {
      reason: "DEAD_LETTERS_FULL",
    });
  }

  /** In the order of their arrival, read page by page. */
  async *of(
    keys: AccountKeys,
    seal: Seal,
    { newestFirst = false, behind }: DeadLettersOptions = {},
  ): AsyncGenerator<StoredDeadLetter> {
    const { client } = this.#options;
    const { deadLetters, deadLetterOrder: order } = keys;
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
        if (text !== null) yield read(text, places[i] ?? "", seal);
      }
      place = Number(places.at(-1));
    }
  }

  async find(keys: AccountKeys, seal: Seal, id: string): Promise<StoredDeadLetter | undefined> {
    const { client } = this.#options;
    const text = await ask(client, () => client.hget(keys.deadLetters, id));
    const place = await ask(client, () => client.zscore(keys.deadLetterOrder, id));
    return text === null || place === null ? undefined : read(text, place, seal);
  }

  async count({ deadLetterOrder }: AccountKeys): Promise<number> {
    const { client } = this.#options;
    return ask(client, () => client.zcard(deadLetterOrder));
  }

  async removeDeadLetter(keys: AccountKeys, id: string): Promise<boolean> {
    const { client } = this.#options;
    return (await ask(client, () => removeDeadLetterScript.run(client, ownKeys(keys), [id]))) === 1;
  }
}

const addDeadLetterScript = loadScript(new URL("./add-dead-letter.lua", import.meta.url));
const removeDeadLetterScript = loadScript(new URL("./remove-dead-letter.lua", import.meta.url));

/** `body` is base64 of the sealed bytes, or of the body itself where it is not `sealed`. */
interface StoredLetter extends DeadLetter {
  readonly sealed?: true;
}

function read(text: string, place: string, seal: Seal): StoredDeadLetter {
  const { sealed, body, ...letter } = JSON.parse(text) as StoredLetter;
  if (!sealed) return { ...letter, body, place };
  const opened = seal.open(Buffer.from(body, "base64"), letter.id);
  return { ...letter, ...(opened && { body: opened.toString("base64") }), place };
}

function ownKeys({ deadLetters, deadLetterOrder, deadLetterSize }: AccountKeys): string[] {
  return [deadLetters, deadLetterOrder, deadLetterSize];
}

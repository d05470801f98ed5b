import { GatewayError } from "../errors.ts";
import { kinds } from "../model/kinds.ts";
import type { Seal } from "../secrets/seal.ts";
import type { StoredRecord } from "../stores/kernel.ts";
import type { LedgerAccount } from "./account.ts";
import type { Change, Draft } from "./change.ts";
import type {
  DeadLetter,
  DeadLetters,
  DeadLettersOptions,
  StoredDeadLetter,
} from "./dead-letter.ts";
import { passOver } from "./record.ts";

/** What one account may have. */
export interface LettersBound {
  readonly letters: number;
  /** Of their bodies together, as they are stored. */
  readonly bytes: number;
}

export interface RecordedDeadLettersOptions {
  readonly accountOf: (account: string) => LedgerAccount;
  /** Encrypts an account's letters. Default: they are stored in plain, for memory alone. */
  readonly sealOf?: ((account: string) => Seal) | undefined;
  /** A letter could not be decrypted: it is returned without its body. */
  readonly onLocked: (account: string) => void;
  readonly bound?: LettersBound | undefined;
}

/**
 * Dead letters as records: one for each, whose body is an attachment, encrypted whole, whatever it
 * contains; an index of them by when they were stored; and a record that sums them up. When an
 * account's share is full, new ones are rejected: dropping an old one would lose a callback that was
 * acknowledged.
 */
export class RecordedDeadLetters implements DeadLetters {
  readonly #options: RecordedDeadLettersOptions;

  constructor(options: RecordedDeadLettersOptions) {
    this.#options = options;
  }

  /** @throws GatewayError UNAVAILABLE when the account's share is full or the store out of reach */
  async addDeadLetter(account: string, { body, ...letter }: DeadLetter): Promise<void> {
    const { accountOf, sealOf, bound = defaultBound } = this.#options;
    const raw = Buffer.from(body, "base64");
    const bytes = sealOf?.(account).close(raw, letter.id) ?? raw;
    const keys = [keyOf(letter.id), sumKey];
    const { result: isKept } = await accountOf(account).transact(keys, (change) =>
      addLetter(change, letter, bytes, bound),
    );
    if (isKept) return;
    throw new GatewayError("UNAVAILABLE", "the dead letters are full: replay or discard some", {
      reason: "DEAD_LETTERS_FULL",
    });
  }

  async *deadLetters(
    account: string,
    { newestFirst = false, behind }: DeadLettersOptions = {},
  ): AsyncGenerator<StoredDeadLetter> {
    const of = this.#options.accountOf(account);
    let place = numberOf(behind);
    for (;;) {
      const next = place === undefined ? {} : newestFirst ? { max: place - 1 } : { min: place + 1 };
      const found = await of.kernel.range([index], { ...next, limit: pageSize, newestFirst });
      if (found.length === 0) return;
      const { records } = await of.kernel.read(found.map(({ member }) => member));
      for (const record of records) {
        let letter: StoredDeadLetter | undefined;
        try {
          letter = this.#read(account, record);
        } catch (error) {
          passOver(error);
        }
        if (letter) yield letter;
      }
      place = found.at(-1)?.score;
    }
  }

  async deadLetter(account: string, id: string): Promise<StoredDeadLetter | undefined> {
    const { records } = await this.#options.accountOf(account).kernel.read([keyOf(id)]);
    return records[0] && this.#read(account, records[0]);
  }

  async countDeadLetters(account: string): Promise<number> {
    return this.#options.accountOf(account).kernel.count(index);
  }

  async removeDeadLetter(account: string, id: string): Promise<boolean> {
    const keys = [keyOf(id), sumKey];
    const { result } = await this.#options.accountOf(account).transact(keys, removeLetter);
    return result;
  }

  /** Undefined if it was removed. @throws UnreadableRecord */
  #read(account: string, { key, text, attachments }: StoredRecord): StoredDeadLetter | undefined {
    if (text === "") return undefined;
    const { accountOf, sealOf, onLocked } = this.#options;
    const letter = accountOf(account).understood(key, () => letterIn(text));
    const stored = attachments.get("body") ?? new Uint8Array();
    const body = sealOf ? sealOf(account).open(stored, letter.id) : stored;
    if (!body) onLocked(account);
    return { ...letter, ...(body && { body: Buffer.from(body).toString("base64") }) };
  }
}

interface LetterRecord extends Omit<StoredDeadLetter, "body"> {
  /** Size of the attachment. */
  readonly bytes: number;
}

/** @throws Error for a text that is not of a letter, or of one of a newer gateway */
function letterIn(text: string): Omit<StoredDeadLetter, "body"> {
  const { bytes: _, ...letter } = JSON.parse(text) as LetterRecord;
  if (letter.kind in kinds && Number.isFinite(letter.receivedAtMs)) return letter;
  throw new Error("it is not a dead letter");
}

/** @returns false if the account's share is full */
function addLetter(
  change: Change,
  letter: Omit<DeadLetter, "body">,
  body: Uint8Array,
  bound: LettersBound,
): boolean {
  const [draft, sum] = change.drafts as readonly [Draft, Draft];
  if (draft.value) return true;
  const { letters, bytes } = (sum.value as LettersBound | undefined) ?? none;
  if (letters >= bound.letters || bytes + body.length > bound.bytes) {
    change.isRead = true;
    return false;
  }
  draft.value = { ...letter, bytes: body.length, place: change.instant } satisfies LetterRecord;
  draft.attachments.set("body", body);
  change.indexes.push({ index, member: draft.key, score: "instant" });
  sum.value = { letters: letters + 1, bytes: bytes + body.length } satisfies LettersBound;
  keepBoth(change);
  return true;
}

/** @returns whether it existed */
function removeLetter(change: Change): boolean {
  const [draft, sum] = change.drafts as readonly [Draft, Draft];
  const letter = draft.value as LetterRecord | undefined;
  if (!letter) {
    change.isRead = true;
    return false;
  }
  const { letters, bytes } = (sum.value as LettersBound | undefined) ?? none;
  draft.value = undefined;
  change.indexes.push({ index, member: draft.key, score: undefined });
  const left = { letters: letters - 1, bytes: bytes - letter.bytes } satisfies LettersBound;
  sum.value = left.letters > 0 ? left : undefined;
  keepBoth(change);
  return true;
}

function keepBoth({ drafts }: Change): void {
  for (const draft of drafts) {
    draft.keepMs = foreverMs;
    draft.isPinned = true;
  }
}

/**
 * Parses the place of a dead letter (`StoredDeadLetter.place`); undefined if there is none.
 * @throws GatewayError INVALID_ARGUMENT for text that is not a place
 */
function numberOf(place: string | undefined): number | undefined {
  if (place === undefined) return undefined;
  if (/^\d{1,16}$/.test(place)) return Number(place);
  throw new GatewayError("INVALID_ARGUMENT", "the cursor is not one of a list of dead letters");
}

function keyOf(id: string): string {
  return `letter:${id}`;
}

const sumKey = "letters";
const index = "letters";
const none: LettersBound = { letters: 0, bytes: 0 };
const defaultBound: LettersBound = { letters: 10_000, bytes: 64 * 1024 * 1024 };
/** A hundred years. */
const foreverMs = 100 * 365 * 86_400_000;
/** Small, since a body may have 1 MiB. */
const pageSize = 20;

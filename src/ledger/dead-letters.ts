import { GatewayError } from "../errors.ts";
import { type Kind, kinds } from "../model/kinds.ts";
import type { StoredRecord } from "../stores/kernel.ts";
import type { LedgerAccount } from "./account.ts";
import type { Change, Draft } from "./change.ts";
import { passOver } from "./record.ts";

/** A callback with a valid signature whose body could not be turned into an event. */
export interface DeadLetter {
  /** Digest of kind and body: the same body is kept once. */
  readonly id: string;
  readonly kind: Kind;
  /** The raw body, in base64. */
  readonly body: string;
  readonly reason: string;
  readonly receivedAtMs: number;
}

/** A dead letter as it is returned. */
export interface StoredDeadLetter extends Omit<DeadLetter, "body"> {
  /** Absent if it was encrypted with a password that is no longer accepted. */
  readonly body?: string;
  /** Its position among those of its account; lists can continue from it even after its removal. */
  readonly place: string;
}

export interface DeadLettersOptions {
  /** Default: the oldest first. */
  readonly newestFirst?: boolean;
  /** The place of a letter: the list continues after it. */
  readonly behind?: string | undefined;
}

/** What the letters of an account take together. */
interface Taken {
  readonly letters: number;
  /** Of their bodies, as they are stored. */
  readonly bytes: number;
}

/** What one account may have. */
const bound: Taken = { letters: 10_000, bytes: 64 * 1024 * 1024 };

/**
 * The dead letters of all accounts, as records: one for each, whose body is an attachment, encrypted
 * whole, whatever it contains; an index of them by when they were stored; and a record that sums them
 * up. When an account's share is full, new ones are rejected: dropping an old one would lose a callback
 * that was acknowledged.
 */
export class DeadLetters {
  readonly #accountOf: (account: string) => LedgerAccount;

  constructor(accountOf: (account: string) => LedgerAccount) {
    this.#accountOf = accountOf;
  }

  /**
   * Stores a dead letter, once per id, until it is removed.
   * @throws GatewayError UNAVAILABLE when the account's share is full or the store out of reach:
   * nothing was acknowledged.
   */
  async addDeadLetter(account: string, { body, ...letter }: DeadLetter): Promise<void> {
    const of = this.#accountOf(account);
    const raw = Buffer.from(body, "base64");
    const bytes = of.keyring?.deadLetters.close(raw, letter.id) ?? raw;
    const { result: isKept } = await of.transact([keyOf(letter.id), sumKey], (change) => {
      const [draft, sum] = change.drafts as readonly [Draft, Draft];
      if (draft.value) return true;
      const taken = sumIn(sum);
      change.isRead = taken.letters >= bound.letters || taken.bytes + bytes.length > bound.bytes;
      const place = change.instant;
      if (!change.isRead) put(change, { ...letter, bytes: bytes.length, place }, bytes);
      return !change.isRead;
    });
    if (isKept) return;
    throw new GatewayError("UNAVAILABLE", "the dead letters are full: replay or discard some", {
      reason: "DEAD_LETTERS_FULL",
    });
  }

  /**
   * The dead letters of an account, in the order of their arrival. The iteration reads a few at a
   * time: letters that are removed meanwhile may be missing, all others come exactly once.
   * @throws GatewayError INVALID_ARGUMENT for text that is not a place
   */
  async *deadLetters(
    account: string,
    { newestFirst = false, behind }: DeadLettersOptions = {},
  ): AsyncGenerator<StoredDeadLetter> {
    if (behind !== undefined && !/^\d{1,16}$/.test(behind)) {
      throw new GatewayError("INVALID_ARGUMENT", "the cursor is not one of a list of dead letters");
    }
    const of = this.#accountOf(account);
    let place = behind === undefined ? undefined : Number(behind);
    for (;;) {
      const next = place === undefined ? {} : newestFirst ? { max: place - 1 } : { min: place + 1 };
      const found = await of.kernel.range([index], { ...next, limit: pageSize, newestFirst });
      if (found.length === 0) return;
      const { records } = await of.kernel.read(found.map(({ member }) => member));
      for (const record of records) {
        let letter: StoredDeadLetter | undefined;
        try {
          letter = letterIn(of, record);
        } catch (error) {
          passOver(error);
        }
        if (letter) yield letter;
      }
      place = found.at(-1)?.score;
    }
  }

  async deadLetter(account: string, id: string): Promise<StoredDeadLetter | undefined> {
    const of = this.#accountOf(account);
    const { records } = await of.kernel.read([keyOf(id)]);
    return records[0] && letterIn(of, records[0]);
  }

  async countDeadLetters(account: string): Promise<number> {
    const of = this.#accountOf(account);
    const [sum] = (await of.kernel.read([sumKey])).records;
    return sum?.text ? of.understood(sumKey, () => JSON.parse(sum.text).letters) : 0;
  }

  /** Removes a dead letter after it was replayed or discarded. Returns whether it existed. */
  async removeDeadLetter(account: string, id: string): Promise<boolean> {
    const { result } = await this.#accountOf(account).transact([keyOf(id), sumKey], (change) => {
      change.isRead = change.drafts[0]?.value === undefined;
      if (!change.isRead) put(change, undefined);
      return !change.isRead;
    });
    return result;
  }
}

interface LetterRecord extends Omit<StoredDeadLetter, "body"> {
  /** Size of the attachment. */
  readonly bytes: number;
}

/** Undefined if it was removed. @throws UnreadableRecord */
function letterIn(
  of: LedgerAccount,
  { key, text, attachments }: StoredRecord,
): StoredDeadLetter | undefined {
  if (text === "") return undefined;
  const { bytes: _, ...letter } = of.understood(key, (): LetterRecord => {
    const record: LetterRecord = JSON.parse(text);
    if (record.kind in kinds && Number.isFinite(record.receivedAtMs)) return record;
    throw new Error("it is not a dead letter");
  });
  const stored = attachments.get("body") ?? new Uint8Array();
  const body = of.keyring ? of.keyring.deadLetters.open(stored, letter.id) : stored;
  if (!body) of.onLocked("dead_letter");
  return { ...letter, ...(body && { body: Buffer.from(body).toString("base64") }) };
}

/** Stores a letter, or removes the one that is there, and what all of them take together with it. */
function put(change: Change, letter: LetterRecord | undefined, body?: Uint8Array): void {
  const [draft, sum] = change.drafts as readonly [Draft, Draft];
  const { bytes } = letter ?? (draft.value as LetterRecord);
  const sign = letter ? 1 : -1;
  const before = sumIn(sum);
  const after: Taken = { letters: before.letters + sign, bytes: before.bytes + sign * bytes };
  draft.value = letter;
  if (body) draft.attachments.set("body", body);
  sum.value = after.letters > 0 ? after : undefined;
  change.indexes.push({ index, member: draft.key, score: letter && "instant" });
  for (const one of change.drafts) Object.assign(one, { keepMs: foreverMs, isPinned: true });
}

function sumIn({ value }: Draft): Taken {
  return (value as Taken | undefined) ?? { letters: 0, bytes: 0 };
}

function keyOf(id: string): string {
  return `letter:${id}`;
}

const sumKey = "letters";
const index = "letters";
/** A hundred years. */
const foreverMs = 100 * 365 * 86_400_000;
/** Small, since a body may have 1 MiB. */
const pageSize = 20;

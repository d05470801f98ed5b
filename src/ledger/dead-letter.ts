import type { Kind } from "../model/kinds.ts";

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

/** A dead letter as the log returns it. */
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

/** The dead letters of all accounts. */
export interface DeadLetters {
  /**
   * Stores a dead letter, once per id, until it is removed.
   * @throws GatewayError UNAVAILABLE when it cannot be stored: nothing was acknowledged.
   */
  addDeadLetter(account: string, letter: DeadLetter): Promise<void>;
  /**
   * The dead letters of an account, in the order of their arrival. The iteration reads a few at a
   * time: letters that are removed meanwhile may be missing, all others come exactly once.
   * @throws GatewayError INVALID_ARGUMENT for text that is not a place
   */
  deadLetters(account: string, options?: DeadLettersOptions): AsyncIterable<StoredDeadLetter>;
  deadLetter(account: string, id: string): Promise<StoredDeadLetter | undefined>;
  countDeadLetters(account: string): Promise<number>;
  /** Removes a dead letter after it was replayed or discarded. Returns whether it existed. */
  removeDeadLetter(account: string, id: string): Promise<boolean>;
}

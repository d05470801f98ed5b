import type { Kind } from "../../model/kinds.ts";

/** Rows of the tables. Places are cursors without their epoch. */

export interface EventRow {
  readonly place: string;
  readonly bytes: Uint8Array;
}

export interface LetterRow {
  readonly place: number;
  readonly id: string;
  readonly kind: Kind;
  readonly reason: string;
  readonly receivedMs: number;
  /** Encrypted. */
  readonly body: Uint8Array;
}

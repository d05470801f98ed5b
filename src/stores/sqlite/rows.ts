import type { Kind } from "../../model/kinds.ts";
import type { Committed, StoredRecord } from "../kernel.ts";

/**
 * Data that the store and its operations in the store's thread exchange. Places are cursors without
 * their epoch.
 */

/** Bounds of an account's log at one instant; see Bounds. */
export interface BoundsRow {
  readonly epoch: string;
  readonly floor: string;
  readonly tail: string;
}

export interface EventRow {
  readonly place: string;
  readonly bytes: Uint8Array;
}

export interface PageRow {
  readonly rows: readonly EventRow[];
  readonly upTo: string;
  readonly bounds: BoundsRow;
}

export interface ReadRow {
  readonly records: readonly StoredRecord[];
  readonly bounds: BoundsRow;
}

export type CommittedRow =
  | (Omit<Extract<Committed, { kind: "committed" }>, "cursors"> & {
      readonly places: readonly string[];
    })
  | Exclude<Committed, { kind: "committed" }>;

export interface LetterRow {
  readonly place: number;
  readonly id: string;
  readonly kind: Kind;
  readonly reason: string;
  readonly receivedMs: number;
  /** Encrypted. */
  readonly body: Uint8Array;
}

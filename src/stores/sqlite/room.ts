import type { DatabaseSync } from "node:sqlite";

/**
 * The store's operations of one room (a folder of `src` with tables of its own). The store's thread
 * imports this module by its URL and calls `open`, so that the thread's code depends on no room.
 */
export interface RoomModule {
  open(database: DatabaseSync): RoomOperations;
}

export interface RoomOperations {
  /** These change nothing in the database. */
  readonly reads: Readonly<Record<string, Operation>>;
  /** These run in a transaction, which is on the disk before their results are returned. */
  readonly writes: Readonly<Record<string, Operation>>;
}

/** Arguments and results are copied between threads: no functions, no class instances. */
// biome-ignore lint/suspicious/noExplicitAny: each operation has types of its own
export type Operation = (...args: any[]) => unknown;

/** One call of an operation, as it is sent to the thread. */
export interface Request {
  readonly id: number;
  readonly room: string;
  readonly operation: string;
  readonly args: readonly unknown[];
}

export type Reply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string };

/** What the thread is started with. */
export interface ThreadData {
  readonly directory: string;
  /** URLs of the rooms' modules, by name. */
  readonly rooms: Readonly<Record<string, string>>;
  /** OFF only in tests that show what FULL protects from. */
  readonly synchronous: "FULL" | "OFF";
}

/** The thread's first message, once; every later one is a list of replies. */
export type Opened = { readonly opened: true } | { readonly refused: string };

import type { DatabaseSync } from "node:sqlite";

/**
 * What a room does on the database, inside the store's thread. The thread imports its module by
 * address and calls `open`; so the thread knows no room, and a room's operations are plain functions.
 */
export interface RoomModule {
  open(database: DatabaseSync): RoomOperations;
}

export interface RoomOperations {
  /** These change nothing. */
  readonly reads: Readonly<Record<string, Operation>>;
  /** These run in a transaction, which is on disk before their results are returned. */
  readonly writes: Readonly<Record<string, Operation>>;
}

/** Results and arguments are copied between threads: no functions, no classes. */
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
  /** Addresses of the rooms' modules, by name. */
  readonly rooms: Readonly<Record<string, string>>;
  /** Off only for tests that show what it is for. */
  readonly synchronous: "FULL" | "OFF";
}

/** The thread's first message, once; every later one is a list of replies. */
export type Opened = { readonly opened: true } | { readonly refused: string };

export interface Operations {
  /** These change nothing in the database. */
  readonly reads: Readonly<Record<string, Operation>>;
  /** These run in a transaction, which is on the disk before their results are returned. */
  readonly writes: Readonly<Record<string, Operation>>;
  /** Writes were rolled back: what the operations remember of the database may be wrong. */
  undone?(): void;
}

/** Arguments and results are copied between threads: no functions, no class instances. */
// biome-ignore lint/suspicious/noExplicitAny: each operation has types of its own
export type Operation = (...args: any[]) => unknown;

/** One call of an operation, as it is sent to the thread. */
export interface Request {
  readonly id: number;
  readonly operation: string;
  readonly args: readonly unknown[];
}

export type Reply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string };

/** What the thread is started with. */
export interface ThreadData {
  readonly directory: string;
  /** OFF only in tests that show what FULL protects from. */
  readonly synchronous: "FULL" | "OFF";
}

/** The thread's first message, once; every later one is a list of replies. */
export type Opened = { readonly opened: true } | { readonly refused: string };

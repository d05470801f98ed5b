import type { Bounds, Cursor } from "./cursor.ts";

/**
 * What a store does for the ledger. A store knows nothing of payments: it holds records, a log of
 * events and indexes, and changes them together, in one commit.
 *
 * What every implementation promises (and `test/contracts/kernel.ts` checks):
 * - a commit happens whole or not at all, and only if every record that it names is still at the
 *   version that the commit was decided on, and no flag that it relies on has another value;
 * - the events of an account have one order, and their cursors grow in that order;
 * - what was read or committed is not taken back by a failover that the configuration is made for.
 */
export interface Kernel {
  /** Whether what was committed survives this process. */
  readonly durable: boolean;
  account(name: string): AccountKernel;
  /** Ends all watches with the error. @returns once nothing is under way */
  close(error: Error): Promise<void>;
}

/** The part of a store that belongs to one merchant account. */
export interface AccountKernel {
  /**
   * The records with these keys, with their attachments, and the bounds of the log, as they are at
   * one instant. With `shown` all events that the records rest on may be shown (see `page`).
   * @throws GatewayError UNAVAILABLE when the store is out of reach
   */
  read(keys: readonly string[], options?: { readonly shown?: boolean }): Promise<Read>;
  /** @throws GatewayError UNAVAILABLE when the store is out of reach: it may have happened */
  commit(commit: Commit): Promise<Committed>;
  /** The store's clock as last received, in milliseconds since the epoch. */
  nowMs(): number;
  /** Whether the store's clock was received: until then, `nowMs` is this machine's. */
  readonly hasClock: boolean;

  /**
   * At most `limit` events of one topic or of all, oldest first: those that follow a cursor, or the
   * oldest kept; with `newest` those that a cursor follows, or the newest. With a limit of 0 the bounds
   * alone. Events that a failover could take back are not shown.
   */
  page(
    topic: string | undefined,
    at: Cursor | undefined,
    limit: number,
    newest?: boolean,
  ): Promise<RowPage>;
  /**
   * Calls the listener with every event that is stored from now on, in the order of the log. It may
   * also get earlier ones. @returns a function that ends it
   */
  watch(listener: Listener): Promise<() => void>;

  /** The members of these indexes at one instant, together, the lowest score first. */
  range(indexes: readonly string[], options: RangeOptions): Promise<readonly Scored[]>;
}

/** A text that changes with each change of a record; empty for a record that does not exist. */
export type Version = string;

export interface StoredRecord {
  readonly key: string;
  readonly version: Version;
  /** Empty for a record that does not exist. */
  readonly text: string;
  /** Bytes that belong to the record, by name. Only `read` returns them. */
  readonly attachments: ReadonlyMap<string, Uint8Array>;
}

export interface Read {
  readonly records: readonly StoredRecord[];
  readonly bounds: Bounds;
}

/** One step: everything in it is stored together. */
export interface Commit {
  /**
   * Unique, of letters and digits: the new version of each record that the commit changes. In a record's text,
   * `<token>:<n>` stands for the place of the commit's event `n`, `<token>:now` for the store's clock
   * in milliseconds, and `<token>:instant` for the commit's instant, if an index has it as a score;
   * the store puts the values there.
   */
  readonly token: string;
  readonly records: readonly RecordChange[];
  readonly events: readonly NewEvent[];
  readonly indexes: readonly IndexChange[];
  /** It changes nothing, and its answer stands even if too few replicas hold what it rests on. */
  readonly isRead?: boolean;
}

export interface RecordChange {
  readonly key: string;
  /** The version that the change was decided on. */
  readonly was: Version;
  /** The values of flags that the change rests on; empty for a flag that is not set. */
  readonly expected: ReadonlyMap<string, string>;
  /**
   * The new text; empty removes the record. Undefined: only the version and the flags are checked.
   */
  readonly text?: string | undefined;
  /** Bytes to keep with the record, by name; undefined removes them. */
  readonly attachments: ReadonlyMap<string, Uint8Array | undefined>;
  /** Short texts to keep with the record, by name. They are checked (`expected`), and never listed. */
  readonly flags: ReadonlyMap<string, string>;
  /** How long the record is kept from now on, in milliseconds. */
  readonly keepMs: number;
  /** Not dropped early, where a store has room for a limited number of records. */
  readonly isPinned?: boolean;
}

export interface NewEvent {
  readonly topic: string;
  readonly bytes: Uint8Array;
}

export interface IndexChange {
  readonly index: string;
  /** One that is the key of a record goes when the record goes. */
  readonly member: string;
  /**
   * `instant` is the store's clock in whole microseconds, and greater than at each commit before that
   * asked for it. Undefined removes the member.
   */
  readonly score: number | "instant" | undefined;
}

export type Committed =
  | {
      readonly kind: "committed";
      readonly nowMs: number;
      readonly cursors: readonly Cursor[];
      /** If an index has it as a score. */
      readonly instant?: number | undefined;
      /** The new texts of the commit's records as they are stored, from a store that has them here. */
      readonly texts?: readonly (string | undefined)[];
    }
  /** A record or a flag is not as supposed: here are all of the commit's records as they are. */
  | { readonly kind: "conflict"; readonly nowMs: number; readonly records: readonly Found[] };

export interface Found extends Omit<StoredRecord, "attachments"> {
  /** The values of the flags that were expected to be otherwise or not. */
  readonly flags: ReadonlyMap<string, string>;
}

/** A stored event. */
export interface Row {
  readonly cursor: Cursor;
  readonly bytes: Uint8Array;
}

export interface RowPage {
  readonly rows: readonly Row[];
  /** Unless `newest`, every event of the topic up to here is on this page or an earlier one. */
  readonly upTo: Cursor;
  readonly bounds: Bounds;
}

/** Neither method may throw or block. */
export interface Listener {
  row(row: Row): void;
  /** The watch has ended with this error. */
  fail(error: Error): void;
}

export interface RangeOptions {
  /** Lowest and highest score. Default: all. */
  readonly min?: number;
  readonly max?: number;
  readonly limit: number;
  readonly newestFirst?: boolean;
}

export interface Scored {
  readonly member: string;
  readonly score: number;
}

/** A record's text with the values that only the store could know; see `Commit.token`. */
export function filledIn(
  text: string,
  token: string,
  places: readonly string[],
  nowMs: number,
  instant?: number,
) {
  const start = `${token}:`;
  const parts: string[] = [];
  let from = 0;
  for (let at = text.indexOf(start); at >= 0; at = text.indexOf(start, from)) {
    parts.push(text.slice(from, at));
    from = at + start.length;
    let end = from;
    while (isOfName(text.charCodeAt(end))) end += 1;
    const name = text.slice(from, end);
    const value = name === "now" ? nowMs : name === "instant" ? instant : places[Number(name)];
    if (name === "" || value === undefined) parts.push(start);
    else {
      parts.push(String(value));
      from = end;
    }
  }
  if (parts.length === 0) return text;
  parts.push(text.slice(from));
  // Joined, not added up: a text that is made of pieces keeps the whole texts that they are of.
  return parts.join("");
}

/** Digits and small letters. */
function isOfName(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || (code >= 0x61 && code <= 0x7a);
}

/** The members that each index has in a range, as one list. */
export function merged(found: Scored[], { limit, newestFirst }: RangeOptions): Scored[] {
  found.sort((a, b) => (newestFirst ? b.score - a.score : a.score - b.score));
  return found.slice(0, limit);
}

/**
 * A kernel whose accounts are opened at their first use.
 * @param sweep is called every `sweepMs` until the store is closed. That it fails says nothing: others
 * report that the store is away
 */
export function kernelOf<Account extends AccountKernel & { end(error: Error): void }>(
  durable: boolean,
  open: (name: string) => Account,
  sweepMs?: number,
  sweep: (accounts: Iterable<Account>) => Promise<void> = async () => {},
) {
  const all = new Map<string, Account>();
  let closed: Error | undefined;
  const sweepAll = () => void sweep(all.values()).catch(() => {});
  const sweeper = sweepMs === undefined ? undefined : setInterval(sweepAll, sweepMs).unref();
  return {
    durable,
    account(name: string): Account {
      if (closed) throw closed;
      const account = all.get(name) ?? open(name);
      all.set(name, account);
      return account;
    },
    async close(error: Error): Promise<void> {
      closed = error;
      clearInterval(sweeper);
      for (const account of all.values()) account.end(error);
    },
  };
}

/** What clients, the payments service and the log said in one run: all that the checker knows. */
export interface History {
  readonly callbacks: readonly SentCallback[];
  readonly payments: readonly SentPayment[];
  /** How often the service was asked for each payment, by external_id. */
  readonly arrivals: ReadonlyMap<string, number>;
  /** Everything that a watcher was shown. */
  readonly shown: readonly Shown[];
  /** Cursors that a watcher was refused for good. */
  readonly refusedCursors: readonly { readonly watcher: string; readonly cursor: string }[];
  /** The log at the end, read from its beginning. */
  readonly log: readonly LogEvent[];
  /** Calls without a known outcome, and what the gateways said of them at the end. */
  readonly unknown: readonly { readonly externalId: string; readonly settled: boolean }[];
  /** Whether each gateway did everything again, once the fault was over. */
  readonly gateways: readonly { readonly name: string; readonly back: boolean }[];
}

export interface LogEvent {
  readonly cursor: string;
  /** The callback that it came by; absent for what came another way. */
  readonly callback?: string | undefined;
}

export interface Shown extends LogEvent {
  readonly watcher: string;
}

export interface SentCallback {
  readonly id: string;
  /** Status codes of its answers, in order. */
  readonly answers: number[];
}

export interface SentPayment {
  readonly externalId: string;
  readonly key?: string | undefined;
  readonly answers: PaymentAnswer[];
  /** What the callers were told where it was not `paid`, for whoever reads of it. */
  readonly errors?: string[];
}

/** `refused`: told that nothing was sent; `unknown`: told that nobody knows. */
export type PaymentAnswer = "paid" | "refused" | "unknown";

/** Numbers by a seed, the same ones each time: mulberry32. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

import type { Secret } from "../src/secrets/secret.ts";

/** One log record of the sandbox. It never contains card data, bodies or credentials. */
export type SandboxRecord =
  | { event: "request"; method: string; route: string; outcome: string; durationMs: number }
  | { event: "callback"; subject: string; attempt: number; outcome: string }
  | { event: "callback_given_up" | "callback_dropped"; subject: string }
  | { event: "internal_error"; error: unknown };

/** The sandbox's delays, in milliseconds. */
const defaultDelays = {
  /** Between the end of an operation and its callback. */
  callbackMs: 100,
  /** Until a delayed payment settles. */
  settleMs: 5_000,
  /** Until a payout settles. */
  payoutMs: 1_000,
  /** Until a slow response is sent. */
  slowAnswerMs: 10_000,
};

export type SandboxDelays = Readonly<typeof defaultDelays>;

/** When a callback that was not answered with 200 is sent again. */
export const defaultCallbackRetry = {
  /** Pause after the first attempt; it doubles with each further one. */
  firstPauseMs: 1_000,
  /** Longest pause. */
  maxPauseMs: 60_000,
  /** Time limit of one attempt. */
  attemptTimeoutMs: 10_000,
  /** No attempt starts later than this after the first one. */
  giveUpAfterMs: 24 * 60 * 60 * 1_000,
};

export type CallbackRetry = Readonly<typeof defaultCallbackRetry>;

export interface SandboxOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** The one merchant's credentials (HTTP Basic); the password signs callbacks too. */
  readonly login: string;
  readonly password: Secret;
  /** URL at which browsers reach the sandbox's pages. Default: from host and port. */
  readonly publicUrl?: string;
  /** Requests a second. Default 50. */
  readonly rateLimit?: number;
  /** Most payments, payouts and cards, each, to keep; the oldest are removed. Default 10,000. */
  readonly maxRecords?: number;
  /**
   * File that keeps the main login's ledger beyond the process. Card numbers are not kept there.
   * Default: it is in memory alone.
   */
  readonly stateFile?: string;
  readonly delays?: Partial<SandboxDelays>;
  readonly callbackRetry?: Partial<CallbackRetry>;
  readonly log?: (record: SandboxRecord) => void;
}

/** The options with their defaults. */
export type Settings = ReturnType<typeof settingsOf>;

export function settingsOf(options: SandboxOptions) {
  return {
    rateLimit: 50,
    maxRecords: 10_000,
    log: (_: SandboxRecord) => {},
    ...options,
    delays: { ...defaultDelays, ...options.delays },
    callbackRetry: { ...defaultCallbackRetry, ...options.callbackRetry },
  };
}

import type { Secret } from "../src/secrets/secret.ts";

/** One log record of the sandbox. It never contains card data, bodies or credentials. */
export type SandboxRecord =
  | { event: "request"; method: string; route: string; outcome: string; durationMs: number }
  | { event: "callback"; subject: string; attempt: number; outcome: string }
  | { event: "callback_given_up" | "callback_dropped"; subject: string }
  | { event: "internal_error"; error: unknown };

/** The sandbox's delays, in milliseconds. */
export interface SandboxDelays {
  /** Between the end of an operation and its callback. Default 100. */
  readonly callbackMs: number;
  /** Until a delayed payment settles. Default 5,000. */
  readonly settleMs: number;
  /** Until a payout settles. Default 1,000. */
  readonly payoutMs: number;
  /** Until a slow response is sent. Default 10,000. */
  readonly slowAnswerMs: number;
}

/** When a callback that was not answered with 200 is sent again. */
export interface CallbackRetry {
  /** Pause after the first attempt; it doubles with each further one. Default 1,000. */
  readonly firstPauseMs: number;
  /** Longest pause. Default 60,000. */
  readonly maxPauseMs: number;
  /** Time limit of one attempt. Default 10,000. */
  readonly attemptTimeoutMs: number;
  /** No attempt starts later than this after the first one. Default 24 hours. */
  readonly giveUpAfterMs: number;
}

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

export const defaultDelays: SandboxDelays = {
  callbackMs: 100,
  settleMs: 5_000,
  payoutMs: 1_000,
  slowAnswerMs: 10_000,
};

export const defaultCallbackRetry: CallbackRetry = {
  firstPauseMs: 1_000,
  maxPauseMs: 60_000,
  attemptTimeoutMs: 10_000,
  giveUpAfterMs: 24 * 60 * 60 * 1_000,
};

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

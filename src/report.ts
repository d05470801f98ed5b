import type { ErrorCode } from "./errors.ts";

/** Reports one observation. It returns at once and never throws. */
export type Report = (...observed: Reported) => void;

/**
 * The process's log. Errors are passed whole, as `err`: the logger decides which parts of them may
 * be logged.
 */
export type Logger = Readonly<Record<"debug" | "info" | "warn" | "error" | "fatal", WriteRecord>>;

/** The least severe first; `silent` is above all records. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

export type LogLevel = (typeof logLevels)[number];

/** Writes a record: a message alone, or what it is about and a message. */
export type WriteRecord = (about: object | string, message?: string) => void;

/** An observation: its name, and what is said of it. */
export type Reported = {
  [Name in keyof Observations]: [name: Name, about: Observations[Name]];
}[keyof Observations];

/** What is done with each observation. */
export type Handlers = {
  readonly [Name in keyof Observations]: (about: Observations[Name]) => void;
};

/** A report that calls the observation's handler, if there is one. */
export function reportTo(handlers: Partial<Handlers>): Report {
  return (name, about) => handlers[name]?.(about as never);
}

/** Reports to nobody. */
export const noReport: Report = () => {};

/**
 * All that is reported; `telemetry` makes metrics and log records of it. `traceparent` is that
 * of the span, if it is sampled. Nothing here holds a secret or a caller's text, except for
 * `externalId` and errors, which go into logs alone.
 */
export interface Observations {
  // The edges.
  rpcEnded: {
    readonly service: string;
    readonly method: string;
    readonly unary: boolean;
    /** `connect`, `grpc` or `grpc-web`. */
    readonly protocol: string;
    readonly code: ErrorCode | "OK";
    readonly durationMs: number;
    /** The caller made a mistake for which the protocol demands INTERNAL. */
    readonly isCallersMistake?: boolean;
    readonly traceparent?: string | undefined;
  };
  graphqlEnded: {
    readonly type: string;
    readonly field: string;
    readonly transport: string;
    readonly code: string;
    readonly durationMs: number;
    readonly traceparent?: string | undefined;
  };
  /** A request on the public listener ended; reported only when durations are sent. */
  httpEnded: {
    /** A standard HTTP method, else `_OTHER`. */
    readonly method: string;
    /** The template of its path; undefined for a path that the listener does not serve. */
    readonly route: string | undefined;
    readonly version: string;
    /** Undefined if no answer was begun. */
    readonly status: number | undefined;
    readonly durationMs: number;
  };
  streamOpened: Stream;
  /** The edge took an event. */
  streamDelivered: Stream;
  streamEnded: Stream & {
    /** `completed`, `left` (by its reader) or the code of an error. */
    readonly reason: string;
    /** The reason in the error's details. */
    readonly detail: string | undefined;
  };
  /** A client's TLS handshake failed: why, in words, and the client's address. */
  handshakeFailed: { readonly fault: string; readonly address: string | undefined };
  /** A limit cut a connection, or one request on it. */
  cut: { readonly listener: Listener; readonly limit: string };
  /** A call was refused because the process has more than it can serve. */
  refused: {
    readonly listener: Listener;
    readonly kind: "money" | "watch" | "other" | "unknown";
  };

  // The payments service.
  upstreamCall: AtEndpoint & {
    /** An HTTP status or an error code. */
    readonly outcome: string;
    /** Why there is no answer that the gateway understands, if there is none. */
    readonly fault?: string | undefined;
    readonly durationMs: number;
    readonly traceparent: string | undefined;
  };
  /** An answer named another `external_id` than its request: the client discards it. */
  mixUp: AtEndpoint;
  /** A field of an answer or a callback was not read as it was sent. */
  fieldFault: AtEndpoint & {
    readonly path: string;
    readonly kind: string;
    /** A word that the gateway does not know, if that is the fault. */
    readonly value?: string | undefined;
  };
  /** The merchant's own credentials were refused, or are accepted. */
  credentials: OfAccount & { readonly accepted: boolean };
  /** The breaker of the account's calls that move money, or of its other calls, changed. */
  breaker: OfAccount & {
    readonly calls: "money" | "other";
    readonly state: "closed" | "open";
  };

  // The rate budget.
  /** The wait of a call for a token is over. */
  tokenGiven: OfAccount & {
    readonly priority: "money" | "read";
    /** Absent for the gateway's own work. */
    readonly caller?: { readonly name: string; readonly customer?: string | undefined } | undefined;
    readonly waitedMs: number;
    /** Why there is no token: the code of the error. */
    readonly refused?: string | undefined;
  };
  /** The service answered Too Many Requests to a call that had its token. */
  tokenRejected: OfAccount;
  /** The tokens come from elsewhere: from the shared budget, or while Redis cannot be used, from a share. */
  budgetSource: OfAccount & {
    readonly source: "shared" | "share";
    /** Why Redis cannot be used, fit for logs. */
    readonly reason?: string;
  };

  // Events and the calls that move money.
  callback: {
    readonly verdict: string;
    readonly requestId: string;
    /** From the headers to the verdict. */
    readonly durationMs: number;
    readonly traceparent?: string | undefined;
    /** Absent if the path does not name a known account and resource. */
    readonly account?: string;
    readonly resource?: string;
    /** Of a stored event or a duplicate. */
    readonly externalId?: string;
    /** Why the body could not be parsed. Never contains a part of it. */
    readonly reason?: string;
    /** The error of the store, or the one that parsing the body threw. */
    readonly error?: unknown;
  };
  appended: OfAccount & {
    readonly kind: string;
    readonly externalId: string;
    readonly source: "callback" | "response" | "reconciliation";
    readonly outcome: "stored" | "duplicate" | "failed";
    /** The event is a second, different final state of its operation; the log has both. */
    readonly conflict: boolean;
    readonly durationMs: number;
  };
  /** What became of a call could not be written: it is looked up until the log has it. */
  unrecorded: OfAccount & { readonly externalId: string; readonly error: unknown };
  /** A stored value could not be decrypted: its password is probably no longer accepted. */
  locked: OfAccount & { readonly what: "event" | "dead_letter" };
  /** A stored record does not say what this gateway can read: its calls are not looked up. */
  unreadable: OfAccount & { readonly record: string; readonly error: unknown };
  /** An operator was given a dead letter's bytes, had it understood, or deleted it for good. */
  letterHandled: {
    readonly operator: string;
    readonly did: "read as it came" | "replayed" | "discarded";
    readonly letter: object;
  };
  /** An operator had the payments service asked about a payment or payout. */
  operatorAsked: OfAccount & {
    readonly operator: string;
    readonly action: "look up" | "resend callback";
    readonly kind: string;
    readonly externalId: string;
  };
  /** A call's outcome became known without its own answer. */
  settled: MoneyCall & { readonly by: string };
  probed: OfAccount & { readonly lookupMethod: string; readonly outcome: string };
  /** A call was not settled in time: an operator has to look. */
  givenUp: MoneyCall & { readonly startedAtMs: number };
  /** A round of the reconciler failed; the next one follows. */
  reconcileFailed: OfAccount & { readonly error: unknown };
  /** A round after those that failed did not. */
  reconcileBack: OfAccount;

  // The process and what it needs.
  /** Files of keys or for TLS, by the variables that name them, changed and are in force. */
  filesChanged: { readonly files: string };
  /** A changed file cannot be used: the previous one stays in force. */
  filesUnusable: { readonly reason: string };
  /** The key set of AUTH_JWKS_URL: the last one that was fetched stays in force for a while. */
  keySetNotFetched: { readonly reason: string };
  redisCommand: {
    readonly command: string;
    readonly failed: boolean;
    readonly durationMs: number;
  };
  redisError: { readonly reason: string };
  /** The Sentinels named a new primary. */
  redisFailover: object;
  /** Once when it begins, then once a minute while it lasts. */
  redisAway: {
    readonly reason: string | undefined;
    readonly awayMs: number;
    /** Those that cannot be reached: in a cluster not always all. */
    readonly accounts: readonly string[];
  };
  redisBack: { readonly awayMs: number };
  /** What became of ended spans, or of a round of durations. `dropped`: the queue was full. */
  telemetrySent: {
    readonly signal: "trace" | "metric";
    readonly outcome: "exported" | "failed" | "dropped";
    readonly count: number;
    readonly error?: unknown;
  };
}

export type Listener = "public" | "rpc" | "admin";

interface OfAccount {
  readonly account: string;
}

interface Stream {
  readonly transport: string;
}

/** `endpoint` is method and path template; of a callback, `callback` and its resource. */
interface AtEndpoint extends OfAccount {
  readonly endpoint: string;
}

interface MoneyCall extends OfAccount {
  readonly method: string;
  readonly externalId: string;
  /** Its state until then. */
  readonly was: string;
}

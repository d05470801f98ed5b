import type { CallKind } from "./admission.ts";

/** Why a connection, or one request on it, was cut. */
export type Cut =
  /** More connections than the listener takes, or than one address may have. */
  | "connections"
  | "connections_of_address"
  /** What a parser refused: malformed, ambiguous, or beyond its own limits. */
  | "protocol"
  | "oversized_headers"
  /** Headers or a body that did not arrive in time. */
  | "slow_request"
  | "pipelining"
  | "ping_flood"
  | "settings_flood"
  | "reset_flood"
  | "message_flood"
  /** An answer that its client does not read. */
  | "unread_answer"
  | "unread_memory"
  /** A stream that needs no caller, beyond those that a connection may have. */
  | "open_streams"
  /** A connection that was closed on our side, and that the other side keeps. */
  | "lingering";

/** What a listener tells of its limits, for metrics and logs. */
export interface LimitObserver {
  onCut(cut: Cut): void;
  /** A call was refused because the process has more than it can serve. */
  onRefused(kind: CallKind): void;
}

/** What a listener tells of its requests. */
export interface HttpObserver {
  /** A request begins; the returned function is called when it ends, with the status if one was sent. */
  onRequest(request: {
    /** One of HTTP's own, else `_OTHER`. */
    readonly method: string;
    /** The template of its path; undefined for a path that is none of ours. */
    readonly route: string | undefined;
    readonly version: string;
  }): (status: number | undefined) => void;
}

export const noopObserver: LimitObserver = { onCut() {}, onRefused() {} };

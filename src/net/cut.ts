/** Why a connection, or one request on it, was cut. */
export type Cut =
  /** More connections than the listener accepts in total, or from one address. */
  | "connections"
  | "connections_of_address"
  /** The system could accept no connection, as without a free file descriptor. */
  | "not_accepted"
  /** A parser refused it: malformed, ambiguous, or beyond the parser's own limits. */
  | "protocol"
  | "oversized_headers"
  /** Headers or a body that did not arrive in time. */
  | "slow_request"
  | "pipelining"
  | "ping_flood"
  | "settings_flood"
  | "reset_flood"
  | "message_flood"
  /** Bodies in small pieces, each of which costs as much as a large one. */
  | "small_pieces"
  /** A response that its client does not read. */
  | "unread_answer"
  | "unread_memory"
  /** A stream that needs no credentials, beyond the number that one connection may have. */
  | "open_streams"
  /** A connection that the gateway closed and its client keeps open. */
  | "lingering";

/** Receives what a listener cuts. */
export type OnCut = (cut: Cut) => void;

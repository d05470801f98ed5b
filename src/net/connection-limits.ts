import type { ConnectionCounts } from "./connections.ts";

/** Limits of each connection of a listener for HTTP/1.1 and HTTP/2. */
export type ConnectionLimits = Readonly<typeof defaultConnectionLimits> & ConnectionCounts;

/** Times are in milliseconds. */
export const defaultConnectionLimits = {
  /** Longest until a connection shows its HTTP version, TLS handshake included. */
  sniffTimeoutMs: 10_000,
  /** Longest the headers of an HTTP/1.1 request may take. */
  headersTimeoutMs: 10_000,
  /** Longest an HTTP/1.1 request may take to arrive, body included. */
  requestTimeoutMs: 30_000,
  /** Largest headers of a request, in bytes. */
  maxHeaderBytes: 16 * 1024,
  /** How long a client may read nothing of a response that waits for it. */
  unreadTimeoutMs: 30_000,
  /** How long a connection without a call is kept open. */
  idleTimeoutMs: 300_000,
  /** How long a connection may stay open after its session was closed. */
  lingerMs: 5_000,

  /** How often an HTTP/2 connection is checked by PING; 0: never. */
  keepAliveIntervalMs: 30_000,
  /** How long the peer may take to acknowledge a PING. */
  keepAliveTimeoutMs: 20_000,

  /** How long a connection takes new calls, give or take a tenth; 0: for ever. */
  maxConnectionAgeMs: 0,
  /** How long the streams of a connection go on after that. */
  connectionAgeGraceMs: 60_000,
  /** Longest a unary call may take, whatever its caller asks for. */
  maxUnaryTimeoutMs: 300_000,

  /** Most calls at once on a new HTTP/2 connection. Clients rely on at least this many. */
  initialConcurrentStreams: 100,
  /** Most calls at once that an HTTP/2 connection can reach. */
  maxConcurrentStreams: 1000,
  /**
   * Calls that a client may reset on one connection. Node's own rate of 33 a second would hit a busy
   * service whose calls merely time out one by one.
   */
  resets: { burst: 1_000, perSecond: 200 },
  /** PINGs on one connection. Tools that measure a connection's speed send some with its data. */
  pings: { burst: 2_000, perSecond: 100 },
  /** SETTINGS frames on one connection; a client usually sends one at its start. */
  settings: { burst: 100, perSecond: 1 },
};

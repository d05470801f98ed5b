import { type buildConnector, type Dispatcher, Pool } from "undici";

/** The connections to the payments service. */
export interface Connections extends Pick<Dispatcher, "dispatch"> {
  /**
   * An answer belonged to another request: the connection that it came by is closed, and for 10
   * minutes each request has a connection of its own. Called before the answer's turn of the event
   * loop is over, no other request has been written to that connection.
   */
  onMixUp(): void;
  /** Takes no more requests. */
  close(): void;
  /** Closes all connections. */
  destroy(): Promise<void>;
}

export interface ConnectionsOptions {
  readonly origin: string;
  /** Longest that a request may take. */
  readonly timeoutMs: number;
  /** For https: a private CA, say. Default: Node's own trust. */
  readonly tls?: Partial<buildConnector.BuildOptions> | undefined;
  /** Milliseconds on a clock that never goes back. */
  readonly now: () => number;
}

/**
 * HTTP/1.1, one request at a time on a connection, so that undici never writes one again. A
 * connection on which bytes come while nothing is asked is closed by undici itself: they would
 * become the answer to the next request.
 */
export function createConnections(options: ConnectionsOptions): Connections {
  const { now } = options;
  let pool = createPool(options);
  /** Given up; requests that are under way on them finish. */
  const former = new Set<Pool>();
  let apartUntil = -Infinity;
  return {
    dispatch(request, handler) {
      // The connection closes behind its answer: what comes late finds nobody.
      return pool.dispatch(now() < apartUntil ? { ...request, reset: true } : request, handler);
    },
    onMixUp() {
      apartUntil = now() + apartMs;
      // What is queued for the next request may be on any idle connection already.
      const mixedUp = pool;
      pool = createPool(options);
      former.add(mixedUp);
      const forget = () => former.delete(mixedUp);
      mixedUp.close().then(forget, forget);
    },
    close() {
      pool.close().catch(() => {});
    },
    async destroy() {
      await Promise.all([pool, ...former].map((each) => each.destroy()));
    },
  };
}

/** How long each request has its own connection after answers were mixed up. */
const apartMs = 10 * 60_000;

function createPool({ origin, timeoutMs, tls }: ConnectionsOptions): Pool {
  return new Pool(origin, {
    connections: 256,
    pipelining: 1,
    allowH2: false,
    connect: { ...tls, timeout: Math.min(timeoutMs, 10_000) },
    // The exchange's own time-out spans the whole call, to the millisecond; undici's are coarser.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

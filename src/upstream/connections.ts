import type { buildConnector, Dispatcher } from "undici";
// The package's index loads fetch, caches and mocks too, which doubles the time.
import Pool from "undici/lib/dispatcher/pool.js";

export type Connections = ReturnType<typeof createConnections>;

export interface ConnectionsOptions {
  readonly origin: string;
  /** Longest that a request may take. */
  readonly timeoutMs: number;
  /** For https, e.g. a private CA. Default: the CAs that Node trusts. */
  readonly tls?: Partial<buildConnector.BuildOptions>;
}

/**
 * The connections to the payments service: HTTP/1.1 with one request at a time per connection, so
 * that undici never writes a request twice. undici closes a connection on which bytes arrive while
 * no request is in flight: they would become the answer to the next request.
 */
export function createConnections(options: ConnectionsOptions) {
  let pool = createPool(options);
  let apartUntil = -Infinity;
  return {
    dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
      // `reset` closes the connection after its answer, so late bytes reach no other request.
      return pool.dispatch(
        performance.now() < apartUntil ? { ...request, reset: true } : request,
        handler,
      );
    },
    /**
     * Reports that an answer belonged to another request: replaces all connections, and for 10
     * minutes gives each request a connection of its own. If it is called in the event loop turn of
     * the answer, no other request has been written to the answer's connection.
     */
    onMixUp(): void {
      apartUntil = performance.now() + apartMs;
      // Bytes that would answer the next request may be waiting on any idle connection. Requests in
      // flight finish.
      pool.close().catch(() => {});
      pool = createPool(options);
    },
    /** Accepts no more requests. */
    close(): void {
      pool.close().catch(() => {});
    },
    /** Closes all connections, once no request is in flight. */
    destroy: (): Promise<void> => pool.destroy(),
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

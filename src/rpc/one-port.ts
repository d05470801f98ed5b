import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import tls from "node:tls";
import { type ConnectionCounts, limitConnections } from "../limits/connections.ts";
import { guardHttp1 } from "../limits/http1.ts";
import { deafObserver, type LimitObserver } from "../limits/observer.ts";
import { createUnreadAnswers, type UnreadLimits } from "../limits/unread-answers.ts";
import { closeWhenIdle } from "./idle-sessions.ts";
import { createSessionGuard, type SessionLimits } from "./session-guard.ts";
import { sniff } from "./sniff.ts";

export interface OnePortOptions {
  readonly listener: (
    request: http.IncomingMessage | http2.Http2ServerRequest,
    response: http.ServerResponse | http2.Http2ServerResponse,
  ) => void;
  /** PEM certificate chain and key; without them the port is cleartext. */
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer };
  readonly limits: ConnectionLimits;
  /** Hears of connections that could not be accepted, for want of file descriptors say. */
  readonly onError: (error: Error) => void;
  /** Hears of what the limits cut. */
  readonly observer?: LimitObserver;
}

export interface ConnectionLimits extends SessionLimits, UnreadLimits, ConnectionCounts {
  /** Longest a connection may take to show which HTTP it speaks, its TLS handshake included. */
  readonly sniffTimeoutMs: number;
  /** Longest the headers of an HTTP/1.1 request may take. */
  readonly headersTimeoutMs: number;
  /** Longest an HTTP/1.1 request may take, body included. */
  readonly requestTimeoutMs: number;
  /** How long a connection without a call is kept. */
  readonly idleTimeoutMs: number;
  /** Calls at once on one HTTP/2 connection. */
  readonly maxConcurrentStreams: number;
  /** Largest headers of a request, in bytes. */
  readonly maxHeaderBytes: number;
}

/** HTTP/1.1 and HTTP/2 on one port: by ALPN under TLS, by the connection's first bytes without. */
export interface OnePort {
  listen(host: string, port: number): Promise<{ port: number }>;
  /** Accepts nothing further and resolves when the calls in flight have ended, however long. */
  drain(): Promise<void>;
  /** Cuts every connection. */
  destroy(): void;
}

export function createOnePort(options: OnePortOptions): OnePort {
  const { limits, observer = deafObserver } = options;
  const sockets = new Set<net.Socket>();
  const sessions = new Set<http2.ServerHttp2Session>();
  const undecided = new Set<net.Socket>();
  const responses = new Set<http.ServerResponse>();
  const guard = createSessionGuard(limits, observer);
  const unread = createUnreadAnswers(limits, observer);
  let draining = false;

  const h1 = http.createServer(
    {
      headersTimeout: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs),
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.idleTimeoutMs,
      connectionsCheckingInterval: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs, 5000),
      maxHeaderSize: limits.maxHeaderBytes,
    },
    (request, response) => {
      if (!h1Guard.passes(request, response)) return;
      unread.watch(response);
      responses.add(response);
      response.once("close", () => {
        responses.delete(response);
        // The connection counts as idle only after this event.
        if (draining) setImmediate(() => h1.closeIdleConnections());
      });
      if (draining) response.shouldKeepAlive = false;
      options.listener(request, response);
    },
  );
  const h1Guard = guardHttp1(h1, observer);
  // Node checks its time-outs on servers that listen. This one is handed its connections.
  h1.emit("listening");

  const h2 = http2.createServer(
    {
      settings: {
        maxConcurrentStreams: limits.maxConcurrentStreams,
        maxHeaderListSize: limits.maxHeaderBytes,
      },
      maxSessionInvalidFrames: 100,
      streamResetBurst: limits.resets.burst,
      streamResetRate: limits.resets.perSecond,
    },
    (request, response) => {
      unread.watch(response);
      options.listener(request, response);
    },
  );
  const openSession = (session: http2.ServerHttp2Session, socket: net.Socket) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    closeWhenIdle(session, limits.idleTimeoutMs);
    guard.add(session, socket);
  };

  const accept = (socket: net.Socket) => {
    undecided.add(socket);
    sniff(socket, limits.sniffTimeoutMs, (protocol) => {
      undecided.delete(socket);
      if (protocol === "h1") h1.emit("connection", socket);
      if (protocol !== "h2") return;
      // The session does not give its socket away, and is made as soon as the server has it.
      const opened = (session: http2.ServerHttp2Session) => openSession(session, socket);
      h2.once("session", opened).emit("connection", socket);
      h2.off("session", opened);
    });
  };
  const acceptor = createAcceptor(options, accept);
  limitConnections(acceptor, limits, observer, () => {
    h1.closeIdleConnections();
    guard.closeIdle();
  });
  acceptor.on("connection", (socket: net.Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });

  return {
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        acceptor.once("error", reject);
        acceptor.listen(port, host, () => {
          acceptor.off("error", reject);
          acceptor.on("error", options.onError);
          resolve({ port: (acceptor.address() as net.AddressInfo).port });
        });
      }),
    drain() {
      draining = true;
      const closed = new Promise<void>((resolve) => acceptor.close(() => resolve()));
      for (const socket of undecided) socket.destroy();
      for (const session of sessions) session.close();
      for (const response of responses) response.shouldKeepAlive = false;
      // Ends the check of time-outs, too.
      h1.close();
      return closed;
    },
    destroy() {
      acceptor.close();
      h1.close();
      guard.stop();
      unread.close();
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
    },
  };
}

const tcp = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 } as const;

function createAcceptor(options: OnePortOptions, accept: (socket: net.Socket) => void): net.Server {
  if (!options.tls) return net.createServer(tcp, accept);
  return tls.createServer(
    {
      ...tcp,
      ...options.tls,
      ALPNProtocols: ["h2", "http/1.1"],
      handshakeTimeout: options.limits.sniffTimeoutMs,
    },
    accept,
  );
}

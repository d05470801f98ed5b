import http from "node:http";
import http2 from "node:http2";
import type { Socket } from "node:net";
import net from "node:net";
import tls from "node:tls";
import { oncePer } from "../collections/once-per.ts";
import type { Observations } from "../report.ts";
import { ageConnection } from "./connection-age.ts";
import type { ConnectionLimits } from "./connection-limits.ts";
import { limitConnections } from "./connections.ts";
import type { OnCut } from "./cut.ts";
import { closeIdleUntil, guardHttp1, http1Options } from "./http1.ts";
import type { Intake, Outlet } from "./intake.ts";
import { headOfHttp1, headOfHttp2, type RequestHead } from "./request-head.ts";
import { createSessionGuard } from "./session-guard.ts";
import { onePerTurn } from "./spread-over-turns.ts";
import { closedCode, codeInWords, systemCode } from "./system-errors.ts";
import { limitUnread } from "./unread-answers.ts";

export interface OnePortOptions {
  readonly listener: (head: RequestHead) => void;
  /** Without it the port is cleartext. */
  readonly tls?: Tls;
  readonly limits: ConnectionLimits;
  /** Takes in the bodies of requests, and limits the memory that clients take. */
  readonly intake: Intake;
  /** Receives what the limits cut. */
  readonly onCut?: OnCut;
  /** Called when a client's TLS handshake fails, unless the client just went away. */
  readonly onHandshakeFailed?: (about: Observations["handshakeFailed"]) => void;
}

/** PEM texts. With `ca`, clients must present a certificate of one of its authorities. */
export interface Tls {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
}

/** HTTP/1.1 and HTTP/2 on one port: by ALPN under TLS, by the connection's first bytes without. */
export function createOnePort(options: OnePortOptions) {
  const { limits, intake, onCut = () => {} } = options;
  const sockets = new Set<net.Socket>();
  /**
   * Connections that have not shown their HTTP version, by their client: once a TLS handshake is
   * over, Node passes on another socket than the one that was accepted.
   */
  const undecided = new Map<string, net.Socket>();
  const ageOf = oncePer((socket: net.Socket) => ageConnection(limits, socket));
  const guard = createSessionGuard(limits, onCut);
  const unread = (response: Outlet) =>
    limitUnread(response, intake.budget, onCut, limits.unreadTimeoutMs);
  let keepsAlive = true;

  const h1 = http.createServer(
    {
      ...http1Options,
      headersTimeout: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs),
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.idleTimeoutMs,
      connectionsCheckingInterval: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs, 5000),
      maxHeaderSize: limits.maxHeaderBytes,
    },
    (request, response) => {
      if (!passes(request, response)) return;
      unread(response);
      const age = ageOf(request.socket);
      const body = intake.bodyOf(request, response, onCut);
      const isLast = () => !keepsAlive || age.isOld;
      options.listener(headOfHttp1(request, response, body, age.ending, isLast));
    },
  );
  h1.on("connection", (socket: net.Socket) => {
    intake.readTurns.add(socket);
    ageOf(socket);
  });
  const passes = guardHttp1(h1, onCut);
  // Node starts its time-out checks when a server listens. This one never does: it is handed its
  // connections.
  h1.emit("listening");

  const h2 = http2.createServer({
    settings: {
      maxConcurrentStreams: limits.initialConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderBytes,
    },
    maxHeaderListPairs,
    streamResetBurst: limits.resets.burst,
    streamResetRate: limits.resets.perSecond,
    // Else nghttp2 drops a field with white space around its value, without a word: the call would
    // be made without its Idempotency-Key.
    strictFieldWhitespaceValidation: false,
  });
  h2.on("stream", (stream, headers, _flags, fields) => {
    // Without a listener, an error of a stream that waits for its turn would end the process.
    stream.on("error", () => {});
    // After a cut, Node still handles the streams that it has already read.
    const session = stream.session as http2.ServerHttp2Session | undefined;
    if (!session || stream.destroyed) return;
    unread(stream);
    const guarded = guard.of(session);
    const body = intake.body(stream, stream, session, () => guarded?.cut("small_pieces"));
    if (fields.some(isPadded)) trimFields(headers);
    // As Node's HTTP/1.1 server does.
    if (headers.expect === "100-continue" && !stream.closed)
      stream.additionalHeaders({ ":status": 100 });
    options.listener(headOfHttp2(stream, session, headers, body, guarded?.ending));
  });
  const inTurn = onePerTurn();
  const accept = (socket: net.Socket) => {
    // It stays: without one, an error before an HTTP server takes over would end the process.
    socket.on("error", () => {});
    // All that the client has sent is then handled at once.
    sniff(socket, limits.sniffTimeoutMs, (protocol) => inTurn(() => hand(socket, protocol)));
  };

  const hand = (socket: net.Socket, protocol: "h1" | "h2") => {
    if (socket.destroyed) return;
    undecided.delete(clientOf(socket));
    if (protocol === "h1") return h1.emit("connection", socket);
    // `session.socket` restricts access to the socket, so it is passed on here. `emit` creates
    // the session synchronously.
    const opened = (session: http2.ServerHttp2Session) => guard.add(session, socket);
    h2.once("session", opened).emit("connection", socket);
    h2.off("session", opened);
  };
  const acceptor = createAcceptor(options, accept);
  limitConnections(acceptor, limits, onCut, () => {
    h1.closeIdleConnections();
    guard.closeIdle();
  });
  acceptor.on("connection", (socket: net.Socket) => {
    const client = clientOf(socket);
    sockets.add(socket);
    undecided.set(client, socket);
    socket.on("close", () => {
      sockets.delete(socket);
      undecided.delete(client);
    });
  });

  /** Closes each HTTP/1.1 connection after the response that it sends next. */
  function endKeepAlive(): void {
    keepsAlive = false;
  }

  return {
    /** What listens. */
    acceptor,
    /** Uses these PEM texts for new connections from now on. */
    renewTls(renewed: Tls): void {
      if (acceptor instanceof tls.Server) acceptor.setSecureContext(renewed);
    },
    endKeepAlive,
    /** Accepts no further connections. Resolves when all calls have ended, however long they take. */
    drain(): Promise<void> {
      endKeepAlive();
      for (const socket of undecided.values()) socket.destroy();
      guard.close();
      // `h1` is not closed: that would end the time-out checks, and a request that stalls would hold
      // the drain.
      return closeIdleUntil(h1, new Promise((resolve) => acceptor.close(() => resolve())));
    },
    /** Cuts every connection. */
    destroy(): void {
      acceptor.close();
      h1.close();
      guard.stop();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Most header fields of an HTTP/2 request: compressed, a field takes one byte. */
const maxHeaderListPairs = 128;

/** Removes white space around values, as Node's HTTP/1.1 parser does. */
function trimFields(headers: http2.IncomingHttpHeaders): void {
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === "string") headers[name] = value.trim();
  }
}

function isPadded(text: string): boolean {
  return text.trim().length < text.length;
}

const tcp = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 } as const;

function createAcceptor(options: OnePortOptions, accept: (socket: net.Socket) => void): net.Server {
  if (!options.tls) return net.createServer(tcp, accept);
  const acceptor = tls.createServer(
    {
      ...tcp,
      ...options.tls,
      ...(options.tls.ca === undefined ? {} : { requestCert: true, rejectUnauthorized: true }),
      ALPNProtocols: ["h2", "http/1.1"],
      handshakeTimeout: options.limits.sniffTimeoutMs,
    },
    accept,
  );
  return acceptor.on("tlsClientError", (error, { authorizationError, remoteAddress: address }) => {
    // Node calls it a closed connection when it refuses a client's certificate.
    const code = authorizationError ? String(authorizationError) : systemCode(error);
    // Health checks of load balancers connect and leave.
    if (code !== undefined && closedCode.test(code)) return;
    const fault = code === undefined ? "the handshake failed" : codeInWords(code);
    options.onHandshakeFailed?.({ fault, address });
  });
}

function clientOf({ remoteAddress, remotePort }: net.Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/**
 * Detects the HTTP version of a connection by its first bytes, gives the bytes back to the socket,
 * and calls back. Destroys the socket if the client ends or `timeoutMs` passes before that.
 */
function sniff(socket: Socket, timeoutMs: number, done: (protocol: "h1" | "h2") => void): void {
  let seen = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  socket.on("readable", read).on("close", settle);

  function read(): void {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) {
      if (socket.readableEnded) socket.destroy();
      return;
    }
    seen = Buffer.concat([seen, chunk]);
    const compared = Math.min(seen.length, preface.length);
    const likeH2 = seen.subarray(0, compared).equals(preface.subarray(0, compared));
    if (likeH2 && compared < preface.length) return;
    settle();
    socket.unshift(seen);
    done(likeH2 ? "h2" : "h1");
  }

  function settle(): void {
    clearTimeout(timer);
    socket.off("readable", read).off("close", settle);
  }
}

/** What an HTTP/2 client sends first (RFC 9113, section 3.4). */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

import { IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { oncePer } from "../collections/once-per.ts";
import { UnderWay } from "../collections/under-way.ts";
import { type ConnectionCounts, limitConnections } from "./connections.ts";
import type { Cut, OnCut } from "./cut.ts";
import type { MemoryBudget } from "./memory-budget.ts";
import { isAuthority, type Misdirection } from "./request-head.ts";
import { onePerTurn } from "./spread-over-turns.ts";
import { limitUnread } from "./unread-answers.ts";

/**
 * Most unanswered requests of one HTTP/1.1 connection: hardly any client pipelines, and Node would
 * start all requests that arrive.
 */
export const maxPipelined = 16;

/**
 * Applies all limits to an HTTP/1.1 listener: connections, unread responses and `guardHttp1`.
 * @param misdirection refuses requests by their headers, except for paths below `open`
 */
export function limitHttp1(
  server: Server,
  counts: ConnectionCounts,
  budget: MemoryBudget,
  onCut: OnCut,
  misdirection?: Misdirection,
  open?: string,
): PassesHttp1 {
  const passes = guardHttp1(server, onCut);
  limitConnections(server, counts, onCut, () => server.closeIdleConnections());
  // What a connection has sent until it is accepted is read in a turn of its own.
  const inTurn = onePerTurn();
  Object.assign(server, { pauseOnConnect: true });
  server.on("connection", (socket: Socket) => inTurn(() => socket.resume()));
  return (request, response) => {
    if (!passes(request, response)) return false;
    limitUnread(response, budget, onCut);
    const isOpen = open !== undefined && request.url?.startsWith(open);
    const refused = isOpen ? undefined : misdirection?.(request.headers);
    if (!refused) return true;
    request.resume();
    const headers = { "content-type": "application/json", connection: "close" };
    response.writeHead(refused.status, headers);
    response.end(`${JSON.stringify({ error: refused.message })}\n`);
    return false;
  };
}

/** Whether a request may be served. If not, it has been refused already. */
type PassesHttp1 = (request: IncomingMessage, response: ServerResponse) => boolean;

/**
 * Closes a server's idle connections again and again until `closed` resolves: one that is kept alive
 * becomes idle only after its last response.
 */
export async function closeIdleUntil(server: Server, closed: Promise<void>): Promise<void> {
  const sweep = setInterval(() => server.closeIdleConnections(), 25);
  await closed;
  clearInterval(sweep);
}

/**
 * Refuses what Node's HTTP/1.1 server allows: requests pipelined without end, and those that
 * `readTarget` or `hasKnownCoding` refuses. Counts what Node's parser refuses.
 */
export function guardHttp1(server: Server, onCut: OnCut): PassesHttp1 {
  /** The responses that a connection waits for. */
  const waitingOn = oncePer((socket: Socket) => {
    const responses = new UnderWay<ServerResponse>();
    // Node does this too, but not for a connection that it stopped parsing: see `Http1Request`.
    socket.once("close", () => {
      for (const response of responses) response.destroy();
    });
    return responses;
  });

  // Node answers what its parser refuses, and destroys the socket with the parser's error.
  server.on("connection", (socket: Socket) => {
    socket.on("error", ({ code }: NodeJS.ErrnoException) => {
      const cut = cutOf(code);
      if (cut) onCut(cut);
    });
  });

  return (request, response) => {
    const { socket } = request;
    // After a cut, Node still handles the requests that it has already read.
    if (socket.destroyed) return false;
    const responses = waitingOn(socket);
    if (responses.size >= maxPipelined) {
      onCut("pipelining");
      socket.destroy();
      return false;
    }
    const member = responses.add(response);
    response.on("close", () => {
      member.leave();
      if (socket.destroyed) request.destroy();
    });
    if (readTarget(request) && hasKnownCoding(request)) return true;
    onCut("protocol");
    response.writeHead(400, { connection: "close" }).end();
    return false;
  };
}

/**
 * The requests of all HTTP/1.1 servers. Behind an upgrade Node parses nothing, so that the next
 * request of a cut connection passes for one: there may be thousands in what was read already. Node
 * then leaves the connection alone, so that `guardHttp1` ends the requests before it.
 */
class Http1Request extends IncomingMessage {
  private isUpgrade = false;

  get upgrade(): boolean {
    return this.isUpgrade || this.socket.destroyed;
  }

  set upgrade(isUpgrade: boolean) {
    this.isUpgrade = isUpgrade;
  }
}

export const http1Options = { IncomingMessage: Http1Request as typeof IncomingMessage };

/**
 * Makes `url` the path that a request asks for, and `headers.host` the host. Returns false for a
 * request that names no host, or two, of which a proxy may have used the other one.
 */
export function readTarget(request: IncomingMessage): boolean {
  if (!namesOneHost(request)) return false;
  if (!request.url?.startsWith("/")) toOriginForm(request);
  return true;
}

/**
 * A target may be an absolute URL: its host then replaces the `Host` header (RFC 9112, 3.2.2). The
 * path stays as it was sent, like that of any other request.
 */
function toOriginForm(request: IncomingMessage): void {
  const { url = "" } = request;
  const [origin] = /^https?:\/\/[^/?#]*/i.exec(url) ?? [];
  const target = origin === undefined ? null : URL.parse(url);
  if (!origin || !target) return;
  const path = url.slice(origin.length);
  request.url = path.startsWith("/") ? path : `/${path}`;
  request.headers.host = target.host;
}

/** An empty `Host` names none on purpose, and HTTP/1.0 has no `Host`. */
function namesOneHost({ rawHeaders, headers }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    if (name.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  return hosts <= 1 && (!headers.host || isAuthority(headers.host));
}

/**
 * Node's parser takes any coding below chunked, and does not decode it. HTTP/1.0 has none: a proxy
 * may see another end of such a body (RFC 9112, 6.1).
 */
function hasKnownCoding({ headers, httpVersionMinor }: IncomingMessage): boolean {
  const coding = headers["transfer-encoding"];
  return coding === undefined || (/^chunked$/i.test(coding) && httpVersionMinor > 0);
}

/** The cut to count for a socket's error. A connection that broke by itself is not counted. */
function cutOf(code = ""): Cut | undefined {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return "slow_request";
  if (code === "HPE_HEADER_OVERFLOW") return "oversized_headers";
  return code.startsWith("HPE_") && code !== "HPE_INVALID_EOF_STATE" ? "protocol" : undefined;
}

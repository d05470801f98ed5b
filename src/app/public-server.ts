import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { kindOfResource } from "../model/kinds.ts";
import type { ConnectionCounts } from "../net/connections.ts";
import type { OnCut } from "../net/cut.ts";
import { http1Options, limitHttp1 } from "../net/http1.ts";
import type { Intake } from "../net/intake.ts";
import type { Misdirection } from "../net/request-head.ts";
import type { Report } from "../report.ts";
import { knownMethodOf } from "../telemetry/tracing/attributes.ts";
import type { Emulator } from "./emulator.ts";

export interface PublicServerOptions {
  readonly graphql: Handler;
  readonly watch: Handler;
  readonly callbacks: (...args: Parameters<Handler>) => Promise<void>;
  /** The demo shop of sandbox mode. */
  readonly demo: ReturnType<Emulator["createDemo"]> | undefined;
  readonly counts: ConnectionCounts;
  readonly intake: Intake;
  readonly report: Report;
  /** Which requests other than callbacks are refused by their headers alone. */
  readonly misdirection: Misdirection | undefined;
  /** Whether requests are timed, to send their durations to a collector. */
  readonly isTimed: boolean;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** Reports a request once it has ended. */
function reportEnd(
  report: Report,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const startedMs = performance.now();
  response.on("close", () =>
    report("httpEnded", {
      method: knownMethodOf(request.method ?? "") ?? "_OTHER",
      route: routeOf(path),
      version: request.httpVersion,
      status: response.headersSent ? response.statusCode : undefined,
      durationMs: performance.now() - startedMs,
    }),
  );
}

/** The template of a path: a metric must not hold the parts that callers choose. */
function routeOf(path: string): string | undefined {
  const [, head, first = "", second = "", ...rest] = path.split("/");
  if (rest.length > 0) return undefined;
  if (path === "/graphql") return path;
  if (head === "watch" && kindOfResource(first) && second) return `/watch/${first}/{external_id}`;
  if (head === "callbacks" && first && kindOfResource(second)) {
    return `/callbacks/{merchant}/${second}`;
  }
  return undefined;
}

/** The public listener: GraphQL, watches, callbacks, and in sandbox mode the demo. */
export function createPublicServer(options: PublicServerOptions): Server {
  const { graphql, watch, callbacks, demo, counts, intake, report, misdirection, isTimed } =
    options;
  const server = createServer(
    {
      ...http1Options,
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 65_000,
      connectionsCheckingInterval: 5_000,
      // A client only offers other upgrades, such as h2c: its request is served without them.
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
    },
    (request, response) => {
      if (!passes(request, response)) return;
      const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
      if (isTimed) reportEnd(report, path, request, response);
      if (path === "/graphql") return graphql(request, response);
      if (path.startsWith("/watch/")) return watch(request, response);
      if (path.startsWith("/callbacks/")) return void callbacks(request, response);
      if (demo && (path === demo.path || path.startsWith(`${demo.path}/`))) {
        return demo.serve(request, response);
      }
      request.resume();
      response.statusCode = 404;
      response.setHeader("content-type", "application/json");
      response.end('{"error":"not found"}\n');
    },
  );
  const onCut: OnCut = (limit) => report("cut", { listener: "public", limit });
  // Callbacks are signed, and the service may reach the gateway by any host name.
  const passes = limitHttp1(server, counts, intake.budget, onCut, misdirection, "/callbacks/");
  server.on("connection", (socket) => intake.readTurns.add(socket));
  return server;
}

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { ConnectionCounts } from "../net/connections.ts";
import { limitHttp1 } from "../net/http1.ts";
import type { LimitObserver } from "../net/observer.ts";
import { defaultUnreadLimits } from "../net/unread-answers.ts";
import { demoPath } from "../sandbox/demo/demo.ts";

/** The listener that the internet reaches: GraphQL, watches, callbacks, and in sandbox mode the demo. */
export function createPublicServer(
  graphql: Handler,
  watch: Handler,
  callbacks: (...args: Parameters<Handler>) => Promise<void>,
  counts: ConnectionCounts,
  observer: LimitObserver,
  demo?: Handler,
): Server {
  const server = createServer(
    {
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 65_000,
      connectionsCheckingInterval: 5_000,
      // Other upgrades, h2c among them, are offers: the request is served as it is.
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
    },
    (request, response) => {
      if (!guard.passes(request, response)) return;
      const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
      if (path === "/graphql") return graphql(request, response);
      if (path.startsWith("/watch/")) return watch(request, response);
      if (path.startsWith("/callbacks/")) return void callbacks(request, response);
      if (demo && (path === demoPath || path.startsWith(`${demoPath}/`))) {
        return demo(request, response);
      }
      request.resume();
      response.statusCode = 404;
      response.setHeader("content-type", "application/json");
      response.end('{"error":"not found"}\n');
    },
  );
  const guard = limitHttp1(server, { ...defaultUnreadLimits, ...counts }, observer);
  return server;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

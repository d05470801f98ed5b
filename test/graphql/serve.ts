import { createServer, type Server } from "node:http";
import type { TestContext } from "node:test";
import { type Caller, scopes } from "../../src/auth/caller.ts";
import type { Credentials } from "../../src/auth/identify.ts";
import type { EdgeOptions } from "../../src/graphql/edge.ts";
import { schema } from "../../src/graphql/schema/schema.ts";
import { createGraphqlServer } from "../../src/graphql/server.ts";
import type { DrainTimes } from "../../src/graphql/transport/websocket.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { type FakeMethods, fakeCore, type Seen } from "../fake-core.ts";
import { listen } from "../listen.ts";

export const somebody: Caller = { name: "test", account: "default", scopes: new Set(scopes) };

export interface Served {
  readonly server: Server;
  readonly url: string;
  readonly wsUrl: string;
  /** Base URL of the plain watches. */
  readonly watchUrl: string;
  /** Calls that reached the core, in order. */
  readonly seen: () => Seen[];
  /** The log, as it was written. */
  readonly logged: () => string;
  post(body: unknown, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>;
  /** The whole answer to a GET of this address, or of an operation in it. */
  get(of: string | Record<string, string>, init?: RequestInit): Promise<Whole>;
  /** Runs an operation by POST and reads its JSON. */
  run(query: string, variables?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Closes all WebSockets; by default at once, even with operations in progress. */
  closeWebSockets(times?: DrainTimes): Promise<void>;
}

interface Whole {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects
export type Answer = any;

/** The GraphQL edge over a fake core, on a listener of its own that is closed after the test. */
export async function serve(
  t: TestContext,
  methods: FakeMethods = {},
  options: Partial<EdgeOptions> = {},
): Promise<Served> {
  const seen: Seen[] = [];
  let logged = "";
  const sink = {
    write(line: string) {
      logged += line;
    },
  };
  const graphql = createGraphqlServer({
    ...{ core: fakeCore(methods, seen), schema },
    identify: async (_: Credentials) => somebody,
    log: createLogger("trace", sink),
    production: true,
    ...options,
  });
  const server = createServer((request, response) =>
    request.url?.startsWith("/watch/")
      ? graphql.handleWatch(request, response)
      : graphql.handle(request, response),
  );
  const drain = graphql.attachWebSocket(server);
  const closeWebSockets = (times = { spreadMs: 0, timeoutMs: 0 }) => drain(times);
  t.after(async () => {
    await closeWebSockets();
    server.closeAllConnections();
    server.close();
  });

  const url = `http://127.0.0.1:${await listen(server)}/graphql`;
  const post: Served["post"] = (body, headers = {}, signal) =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...(signal && { signal }),
    });
  return {
    server,
    url,
    wsUrl: url.replace("http", "ws"),
    watchUrl: new URL("/watch", url).href,
    seen: () => seen,
    logged: () => logged,
    post,
    async get(of, init) {
      const address = typeof of === "string" ? of : `${url}?${new URLSearchParams(of)}`;
      const response = await fetch(address, init);
      return { status: response.status, headers: response.headers, text: await response.text() };
    },
    run: async (query, variables, headers) =>
      (await post({ query, variables }, headers)).json() as Promise<Answer>,
    closeWebSockets,
  };
}

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ApiError } from "./api/api-error.ts";
import { errorResponse, type HttpResponse, receiveBody, send } from "./api/http.ts";
import type { Emulator } from "./emulator.ts";
import { openSavedState, SavedStateError } from "./ledger/saved-state.ts";
import { type SandboxOptions, settingsOf } from "./options.ts";
import { createRuns } from "./runs.ts";

/** A running sandbox. */
export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/**
 * Starts an emulator of the payments service: the whole REST interface of the spec over a ledger
 * of its own, with magic values for every outcome (docs/sandbox.md). It protects nothing real.
 * @throws the listener's error, such as EADDRINUSE, and SavedStateError for a `stateFile` that
 * cannot be used
 */
export async function startSandbox(options: SandboxOptions) {
  const settings = settingsOf(options);
  const { log } = settings;
  const saved =
    options.stateFile === undefined
      ? undefined
      : openSavedState(options.stateFile, (error) => log({ event: "internal_error", error }));
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 });
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(options.port, options.host, resolve);
  await listening.catch((error) => {
    saved?.close();
    throw error;
  });
  const { port } = server.address() as AddressInfo;
  const url = `http://${authority(options.host, port)}`;
  const runs = resumed();

  /** The runs with what is saved, which may hold a record that nobody can read. */
  function resumed() {
    try {
      return createRuns(settings, options.publicUrl ?? url, saved);
    } catch (error) {
      server.close();
      saved?.close();
      if (options.stateFile === undefined) throw error;
      // The error itself may quote the record.
      throw new SavedStateError(options.stateFile, "it has a damaged record");
    }
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedAt = performance.now();
    const target = URL.parse(request.url ?? "", "http://sandbox");
    const path = target?.pathname ?? "";
    const isApi = path.startsWith("/api/");
    const run = runOf(request, path);
    const { journal, schedule, rateLimit, findRoute } = run ?? runs.main;
    const match = findRoute(request.method ?? "", path);
    const body = await receiveBody(request);
    const query = target?.searchParams ?? new URLSearchParams();
    let answer: HttpResponse;
    try {
      if (!run) throw new ApiError("authorization_failed");
      if (isApi && !rateLimit.take()) throw new ApiError("too_many_requests");
      if (!("route" in match)) throw noRoute(match.allowed);
      if (body instanceof ApiError) throw body;
      const { route, params } = match;
      answer = await route.handle({ params, query, headers: request.headers, body });
    } catch (error) {
      answer = errorResponse(toApiError(error));
    }
    const outcome = answer.lost ? "lost" : String(answer.status);
    if (run && isApi) {
      const text = typeof body === "string" ? body : "";
      const externalId = externalIdOf(text, query);
      const method = request.method ?? "";
      journal.add({ type: "request", method, path, externalId, body: text, outcome });
    }
    if (answer.delayMs !== undefined) await schedule.sleep(answer.delayMs);
    const limits = isApi ? rateLimit.headers() : {};
    // After a body that was not read to its end, the connection cannot be reused.
    const close = request.complete ? {} : { Connection: "close" };
    send(response, { ...answer, headers: { ...limits, ...close, ...answer.headers } });
    log({
      event: "request",
      method: "route" in match ? match.route.method : "other",
      route: "route" in match ? match.route.path : "none",
      outcome,
      durationMs: performance.now() - startedAt,
    });
  }

  /** Undefined for wrong credentials; pages need no credentials. */
  function runOf({ headers }: IncomingMessage, path: string): Emulator | undefined {
    if (/^\/(?:api|sandbox|__sandbox)\//.test(path)) return runs.of(headers.authorization);
    return runs.ofPage(path.split("/", 3)[2] ?? "");
  }

  function toApiError(error: unknown): ApiError {
    if (error instanceof ApiError) return error;
    log({ event: "internal_error", error });
    return new ApiError("internal_error");
  }

  server.on("request", (request, response) => {
    serve(request, response).catch((error: unknown) => {
      response.destroy();
      if (!runs.main.schedule.closing.aborted) log({ event: "internal_error", error });
    });
  });

  return {
    /** Base address, without a slash at its end. */
    url,
    port,
    /** The clock of the main run. */
    clock: runs.main.clock,
    /** The main run's ledger now, without card numbers. */
    ledger: runs.main.view,
    /** Resolves when no background work is left: no callback, no delayed settlement. */
    async idle() {
      await Promise.all(Array.from(runs.all(), (run) => run.schedule.idle()));
    },
    /** Stops listening, breaks connections, and ends timers and callbacks. */
    async close() {
      const closed = new Promise<void>((done) => server.close(() => done()));
      server.closeAllConnections();
      const ended = Array.from(runs.all(), (run) => run.close());
      await Promise.all([closed, ...ended]);
    },
  };
}

/** The request's external_id: from the query, or from the body as in the spec's requests. */
function externalIdOf(body: string, query: URLSearchParams): string | undefined {
  const given = query.get("external_id");
  if (given !== null || body === "") return given ?? undefined;
  try {
    const { external_id: own, order } = JSON.parse(body);
    const id: unknown = own ?? order?.external_id;
    return typeof id === "string" ? id : undefined;
  } catch {
    return undefined;
  }
}

function noRoute(allowed: readonly string[]): ApiError {
  if (allowed.length === 0) {
    return new ApiError("action_not_allowed", { status: 404, message: "There is no such path" });
  }
  const message = `The path takes ${allowed.join(", ")}`;
  return new ApiError("action_not_allowed", { status: 405, message });
}

/** Host and port at which a browser on this machine reaches the listener. */
function authority(host: string, port: number): string {
  if (host === "0.0.0.0") return `127.0.0.1:${port}`;
  if (host === "::") return `[::1]:${port}`;
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

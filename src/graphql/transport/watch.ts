import type { IncomingMessage, ServerResponse } from "node:http";
import type { Caller } from "../../auth/caller.ts";
import { invalidFields } from "../../core/validate.ts";
import { GatewayError } from "../../errors.ts";
import { type Kind, kindOfResource, kinds } from "../../model/kinds.ts";
import { isUtf8Address } from "../../net/address-text.ts";
import type { Slot } from "../../net/admission.ts";
import { requestIdHeader, requestIdOf } from "../../net/request-id.ts";
import { leaveInTurn } from "../../net/spread-over-turns.ts";
import { knownMethodOf } from "../../telemetry/tracing/attributes.ts";
import { credentialsOf } from "../credentials.ts";
import type { Edge } from "../edge.ts";
import { codeOf, problemOf, problemType } from "../errors.ts";
import { Live } from "../live.ts";
import { startHttpSpan } from "../operation.ts";
import { deliveries } from "../schema/stream.ts";
import { type OpenWatch, startInit, watches } from "../schema/watch.ts";
import { beginStream, mappingOf, streamHeaders } from "./event-stream.ts";
import { answerHeaders, preflightHeaders, refuseForeignPage } from "./headers.ts";
import { sendEventStream } from "./send.ts";
import { plainEvents } from "./stream-format.ts";

/**
 * Serves the watch of one payment or payout as plain Server-Sent Events, for apps without GraphQL.
 * Its streams, and its statuses for an EventSource, are those of a subscription.
 */
export function createWatchEndpoint(
  edge: Edge,
): (request: IncomingMessage, response: ServerResponse, slot: Slot) => Promise<void> {
  const { core, identify, log, tracing, formatError, corsOrigins, heartbeats } = edge;
  const format = plainEvents((error) => formatError(error).message);

  return async (request, response, slot) => {
    const startedMs = performance.now();
    const requestId = requestIdOf(request.headers[requestIdHeader]?.toString());
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
    const [, , resource = "", id = "", ...rest] = pathname.split("/");
    const kind = kindOfResource(resource);
    const leave = new AbortController();
    const live = new Live(request.headers["last-event-id"]?.toString());
    let caller: Caller | undefined;
    let externalId: string | undefined;
    let failure: unknown;
    const method = knownMethodOf(request.method ?? "");
    const route = kind && `/watch/${kinds[kind].resource}/{external_id}`;
    const name = [method ?? "HTTP", route].filter(Boolean).join(" ");
    const span = startHttpSpan(tracing, request, name, { "http.route": route });

    response.on("close", () => {
      if (response.writableFinished) settle();
      else leaveInTurn(settle);
    });
    const settle = () => {
      leave.abort();
      slot.leave();
      const error = failure ?? live.failure?.error;
      const left = !response.writableFinished && error === undefined;
      const code = left ? "CANCELLED" : error === undefined ? "OK" : codeOf(error);
      span.set({ "http.response.status_code": response.statusCode });
      if (response.headersSent && response.statusCode >= 500) span.fail(`${response.statusCode}`);
      else if (code === "INTERNAL_SERVER_ERROR") span.fail(code);
      const durationMs = Math.round((performance.now() - startedMs) * 1000) / 1000;
      const kindName = kind && kinds[kind].name;
      const record = {
        kind: kindName,
        code,
        durationMs,
        requestId,
        caller: caller?.name,
        account: caller?.account,
        externalId,
        transport: "sse",
      };
      span.run(() => log.info(record, "watch"));
      span.end();
    };

    const refuse = (error: unknown, status = mappingOf(error).status) => {
      failure = error;
      const formatted = formatError(error);
      const { http } = formatted.extensions as { http?: { headers?: Record<string, string> } };
      response.writeHead(status, { ...http?.headers, "content-type": problemType });
      response.end(problemOf(formatted, status));
    };

    const { origin, "access-control-request-method": wanted } = request.headers;
    response.setHeader(requestIdHeader, requestId);
    response.setHeaders(new Map(Object.entries(answerHeaders(origin, corsOrigins))));
    if (!isUtf8Address(request.url ?? "")) return refuse(notUtf8());
    if (!kind || id === "" || rest.length > 0) {
      return refuse(new GatewayError("NOT_FOUND", "no such path", { reason: "NO_SUCH_PATH" }));
    }
    if (request.method === "OPTIONS" && wanted !== undefined) {
      response.writeHead(204, preflightHeaders(request.headers, corsOrigins)).end();
      return;
    }
    if (request.method !== "GET") {
      response.setHeader("allow", "GET");
      return refuse(
        new GatewayError("UNIMPLEMENTED", "a watch is a GET", { reason: "METHOD_NOT_ALLOWED" }),
        405,
      );
    }

    let open: OpenWatch;
    try {
      refuseForeignPage(request.headers, corsOrigins);
      caller = await identify(credentialsOf(request));
      open = openerOf(kind, id, searchParams, live);
    } catch (error) {
      if (!mappingOf(error).retryable) return refuse(error);
      // An EventSource reconnects only after status 200.
      live.failed(error);
      response.writeHead(200, streamHeaders(format));
      response.end(format.item({ error }, live, true));
      return;
    }
    const call = {
      ...{ caller, signal: leave.signal, requestId, transport: "sse" },
      onAbout: (asked: string) => {
        externalId = asked;
      },
    };
    const liftDeadline = () => slot.leave();
    await span.run(async () => {
      const results = deliveries({ core, call, operation: { liftDeadline, live } }, open);
      const begun = { results, live, format, reconnects: true, opens: true };
      const { stream, ...head } = await beginStream({ ...begun, failureOf: () => undefined });
      if (!stream) {
        response.writeHead(head.status).end();
      } else if (head.status === 200) {
        await sendEventStream(head, stream, response, heartbeats);
      } else {
        await stream.blocks.return();
        refuse(live.failure?.error);
      }
    });
  };
}

/** @throws GatewayError INVALID_ARGUMENT for an invalid external_id or query parameter */
function openerOf(kind: Kind, id: string, query: URLSearchParams, live: Live): OpenWatch {
  const init = {
    externalId: externalIdOf(id),
    untilFinal: flagOf(query, "until_final"),
    ...startInit({ after: query.get("after") }, live),
  };
  return watches[kinds[kind].name](init);
}

function externalIdOf(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw notUtf8();
  }
}

function notUtf8(): GatewayError {
  return invalidFields([{ path: "external_id", message: "must be percent-encoded UTF-8" }]);
}

function flagOf(query: URLSearchParams, name: string): boolean {
  const value = query.get(name) ?? "false";
  if (value !== "true" && value !== "false") {
    throw invalidFields([{ path: name, message: "must be true or false" }]);
  }
  return value === "true";
}

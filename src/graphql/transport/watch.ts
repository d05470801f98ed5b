import type { IncomingMessage } from "node:http";
import { invalidFields } from "../../core/validate.ts";
import { GatewayError } from "../../errors.ts";
import { type Kind, kindOfResource, kinds } from "../../model/kinds.ts";
import { isUtf8Address } from "../../net/address-text.ts";
import { createContext, createLive, type OpenStream } from "../context.ts";
import type { Edge } from "../edge.ts";
import { codeOf, createErrorFormatter, problemOf, problemType, watchSpelling } from "../errors.ts";
import type { Delivery } from "../live.ts";
import type { Operation } from "../operation.ts";
import { startInit, watches } from "../schema/watch.ts";
import { type Answer, beginStream, headOf, streamHeaders } from "./event-stream.ts";
import { preflightHeaders, refuseForeignPage } from "./headers.ts";
import { plainEvents } from "./stream-format.ts";

/** The payment or payout that an address below `/watch` names. */
export interface Watched {
  readonly kind: Kind;
  /** As it stands in the address. */
  readonly externalId: string;
}

/** Undefined if the address names none. */
export function watchedBy({ url = "" }: IncomingMessage): Watched | undefined {
  const { pathname = "" } = URL.parse(url, "http://localhost") ?? {};
  const [, , resource = "", externalId = "", ...rest] = pathname.split("/");
  const kind = kindOfResource(resource);
  return kind && externalId !== "" && rest.length === 0 ? { kind, externalId } : undefined;
}

/**
 * Serves the watch of one payment or payout as plain Server-Sent Events, for apps without GraphQL.
 * Its streams, and its statuses for an EventSource, are those of a subscription.
 */
export function createWatchPath({ core, corsOrigins, log }: Edge) {
  const formatError = createErrorFormatter(log, watchSpelling);
  const format = plainEvents((error) => formatError(error).message);

  return async (
    request: IncomingMessage,
    watched: Watched | undefined,
    operation: Operation,
  ): Promise<Answer> => {
    const { method, url = "/", headers } = request;
    const refused = (error: unknown, status = headOf(error).status, allow = {}): Answer => {
      operation.failed(codeOf(error));
      const formatted = formatError(error);
      const { http } = formatted.extensions as { http?: { headers?: Record<string, string> } };
      const head = { ...allow, ...http?.headers, "content-type": problemType };
      return { status, headers: head, body: problemOf(formatted, status) };
    };

    if (watched && method === "OPTIONS" && headers["access-control-request-method"]) {
      return { status: 204, headers: preflightHeaders(headers, corsOrigins), body: undefined };
    }
    operation.begin();
    if (!isUtf8Address(url)) return refused(notUtf8());
    if (!watched) {
      return refused(new GatewayError("NOT_FOUND", "no such path", { reason: "NO_SUCH_PATH" }));
    }
    if (method !== "GET") {
      const details = { reason: "METHOD_NOT_ALLOWED" };
      const error = new GatewayError("UNIMPLEMENTED", "a watch is a GET", details);
      return refused(error, 405, { allow: "GET" });
    }
    try {
      refuseForeignPage(headers, corsOrigins);
      const context = createContext(core, await operation.request.authenticate(), operation);
      const live = createLive(context, openerOf(watched, url, operation.request.lastEventId));
      const show = (delivery: Delivery) => delivery;
      const begun = await beginStream({ live, show, format, reconnects: true });
      if (typeof begun.body !== "object" || begun.status === 200) return begun;
      return refused(live.failure?.error);
    } catch (error) {
      if (!headOf(error).retryable) return refused(error);
      // An EventSource reconnects only after status 200.
      const body = format.item({ error }, { failure: { error } });
      return { status: 200, headers: streamHeaders(format), body };
    }
  };
}

/** @throws GatewayError INVALID_ARGUMENT for an invalid external_id or query parameter */
function openerOf(
  { kind, externalId }: Watched,
  url: string,
  lastEventId: string | undefined,
): OpenStream {
  const { searchParams: query } = new URL(url, "http://localhost");
  const init = {
    externalId: externalIdOf(externalId),
    untilFinal: flagOf(query, "until_final"),
    ...startInit(lastEventId ?? query.get("after")),
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

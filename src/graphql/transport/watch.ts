import type { IncomingMessage } from "node:http";
import { GatewayError, invalidFields } from "../../errors.ts";
import { type Kind, kindOfResource, kinds } from "../../model/kinds.ts";
import { isUtf8Address, percentDecoded } from "../../net/address-text.ts";
import { createContext, createWatch } from "../context.ts";
import type { Edge } from "../edge.ts";
import {
  codeOf,
  createErrorFormatter,
  headOf,
  problemOf,
  problemType,
  watchSpelling,
} from "../errors.ts";
import type { Delivery } from "../live.ts";
import type { Operation } from "../operation.ts";
import type { Answer } from "./answer.ts";
import { beginStream, streamHeaders } from "./event-stream.ts";
import { refuseForeignPage } from "./headers.ts";
import { plainEvents } from "./stream-format.ts";

/** The payment or payout that an address below `/watch` names. */
export interface Watched {
  readonly kind: (typeof kinds)[Kind];
  /** As it stands in the address. */
  readonly externalId: string;
}

/** Undefined if the address names none. */
export function watchedBy({ url = "" }: IncomingMessage): Watched | undefined {
  const { pathname = "" } = URL.parse(url, "http://localhost") ?? {};
  const [, , resource = "", externalId = "", ...rest] = pathname.split("/");
  const kind = kindOfResource(resource);
  if (!kind || externalId === "" || rest.length > 0) return undefined;
  return { kind: kinds[kind], externalId };
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
    if (watched && method === "OPTIONS" && headers["access-control-request-method"]) {
      return { status: 204, headers: {}, body: undefined };
    }
    operation.begin();
    try {
      if (!isUtf8Address(url)) throw notUtf8();
      if (!watched) {
        throw new GatewayError("NOT_FOUND", "no such path", { reason: "NO_SUCH_PATH" });
      }
      if (method !== "GET") throw notGet;
      refuseForeignPage(headers, corsOrigins);
      const context = await createContext(core, operation);
      const { searchParams: query } = new URL(url, "http://localhost");
      const externalId = percentDecoded(watched.externalId);
      if (externalId === undefined) throw notUtf8();
      const isFinal = flagOf(query, "until_final");
      const live = createWatch(context, watched.kind.name, externalId, isFinal, query.get("after"));
      const show = (delivery: Delivery) => delivery;
      const begun = await beginStream({ live, show, format, reconnects: true });
      if (begun.status < 400) return begun;
      throw live.failure?.error;
    } catch (error) {
      operation.failed(codeOf(error));
      const { status, retryable, ...head } = error === notGet ? headOfNotGet : headOf(error);
      if (retryable) {
        // An EventSource reconnects only after status 200.
        const body = format.item({ error }, { failure: { error } });
        return { status: 200, headers: streamHeaders(format), body };
      }
      const body = problemOf(formatError(error), status);
      return { status, headers: { ...head.headers, "content-type": problemType }, body };
    }
  };
}

const notGet = new GatewayError("UNIMPLEMENTED", "a watch is a GET", {
  reason: "METHOD_NOT_ALLOWED",
});
const headOfNotGet = { status: 405, headers: { allow: "GET" }, retryable: false };

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

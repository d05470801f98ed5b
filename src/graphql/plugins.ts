import { isUtf8 } from "node:buffer";
import { type DocumentNode, GraphQLError } from "graphql";
import type { Plugin } from "graphql-yoga";
import { GatewayError } from "../errors.ts";
import { isUtf8Address } from "../net/address-text.ts";
import type { OriginHeaders } from "../net/browser-origin.ts";
import type { Context, RequestContext } from "./context.ts";
import type { Refusal } from "./document-cache.ts";
import type { Edge } from "./edge.ts";
import { recordError } from "./operations.ts";
import { RequestError } from "./request-error.ts";
import { refuseForeignPage } from "./transport/headers.ts";

type GatewayPlugin = Plugin<Context, RequestContext>;

/**
 * Checks requests before their bodies are read, and reads them. A record is also kept of what is
 * rejected before it is an operation.
 */
export function readsRequests({
  corsOrigins,
  formatError,
  documentOf,
}: Pick<Edge, "corsOrigins" | "formatError" | "documentOf">): GatewayPlugin {
  return {
    async onRequestParse({ request, serverContext, requestParser, setRequestParser, fetchAPI }) {
      const { method, headers } = request;
      const { operation } = serverContext;
      if (method === "GET" || method === "POST") operation.begin();
      // Before any other work.
      refuseForeignPage(originOf(headers), corsOrigins);
      // Before the body is read: a request without credentials costs nothing more.
      await operation.authenticate().catch((error: unknown) => {
        throw formatError(error, operation.acceptLanguage);
      });
      if (!isUtf8Address(request.url)) throw notUtf8("the address must be percent-encoded UTF-8");
      if (method !== "POST") return;
      refuseOtherBodies(headers);
      if (!requestParser) return;
      setRequestParser(async (request) =>
        orNotJson(async () => {
          // Reading text would replace invalid UTF-8, not reject it (RFC 8259, section 8.1).
          const body = new Uint8Array(await request.arrayBuffer());
          if (!isUtf8(body)) throw notUtf8("the body must be UTF-8");
          return requestParser(new fetchAPI.Request(request.url, { method, headers, body }));
        }),
      );
    },
    /**
     * Finds the document that a request names by its id or text; rejects it if only trusted
     * documents are allowed and it is none.
     */
    onParams({ params, setParams, request }) {
      if (typeof params !== "object" || params === null || Array.isArray(params)) return;
      const { documentId, ...others } = params as typeof params & { documentId?: unknown };
      const inUrl = URL.parse(request.url)?.searchParams.get("documentId");
      const query = documentOf({ ...others, documentId: documentId ?? inUrl });
      setParams(query === undefined ? others : { ...others, query });
    },
  };
}

/** As `originHeadersOf`. */
function originOf(headers: Headers): OriginHeaders {
  return {
    origin: headers.get("origin") ?? undefined,
    host: headers.get("host") ?? undefined,
    secFetchSite: headers.get("sec-fetch-site") ?? undefined,
  };
}

/**
 * Accepts only JSON bodies that are not compressed. Forms, plain text and bodies without a type are
 * rejected: a page of another origin can make a browser send those without a CORS preflight.
 */
function refuseOtherBodies(headers: Headers): void {
  if (!jsonType.test(headers.get("content-type") ?? "")) {
    throw unsupported("the body must be application/json");
  }
  if (!/^(?:identity)?$/i.test(headers.get("content-encoding") ?? "")) {
    throw unsupported("the body must not be compressed: send it without content-encoding");
  }
}

function notUtf8(message: string): RequestError {
  return new RequestError(message, "BAD_REQUEST", { status: 400 });
}

function unsupported(message: string): RequestError {
  return new RequestError(message, "UNSUPPORTED_MEDIA_TYPE", { status: 415 });
}

/**
 * Replaces Yoga's error for a body that is not JSON, whose status would be 200 for clients that
 * accept only `application/json`. A body that ends early gets the same error; one that was dropped
 * to free memory gets its own, which says that the client may try again.
 */
async function orNotJson<T>(parse: () => Promise<T>): Promise<T> {
  try {
    return await parse();
  } catch (error) {
    if (error instanceof GraphQLError && !error.extensions.http?.spec) throw error;
    if (error instanceof GatewayError && error.code === "RESOURCE_EXHAUSTED") throw error;
    throw new RequestError("the body must be JSON", "BAD_REQUEST", { status: 400 });
  }
}

const jsonType = /^application\/json *(?:;|$)/i;

/** Runs operations by the same steps as the other paths. Yoga only words what it cannot find. */
export function runsOperations({ find, run, subscribe }: Edge["operations"]): GatewayPlugin {
  const refusals = new WeakMap<DocumentNode, Refusal>();
  return {
    onParse({ params, setParseFn }) {
      setParseFn(() => {
        const { document, refused } = find(String(params.source));
        if (document) return document;
        const { outline } = refused;
        if (!outline) throw refused.errors()[0];
        refusals.set(outline, refused);
        return outline;
      });
    },
    onValidate({ params, setResult }) {
      setResult(refusals.get(params.documentAST)?.errors() ?? []);
    },
    onExecute: ({ setExecuteFn }) => setExecuteFn(run),
    onSubscribe: ({ setSubscribeFn }) => setSubscribeFn(subscribe),
    onResultProcess({ result, serverContext }) {
      recordError(serverContext.operation, result);
    },
  };
}

import { isUtf8 } from "node:buffer";
import {
  type DocumentNode,
  type ExecutionArgs,
  execute,
  GraphQLError,
  getOperationAST,
} from "graphql";
import type { Plugin } from "graphql-yoga";
import { GatewayError } from "../errors.ts";
import { isUtf8Address } from "../net/address-text.ts";
import { isCrossOrigin, refusedOrigin } from "../net/browser-origin.ts";
import { type Context, concluded, type Surroundings } from "./context.ts";
import type { Refusal } from "./document-cache.ts";
import type { FormatError } from "./errors.ts";
import type { FindDocument } from "./find-document.ts";
import { limits } from "./limits.ts";
import { costOf } from "./operation-cost.ts";
import { tooComplex } from "./operation-shape.ts";
import { RequestError } from "./request-error.ts";
import { rootFieldsOf } from "./root-fields.ts";
import type { createDocumentOf } from "./trusted-documents.ts";
import { faultsOfVariables } from "./variables.ts";

type GatewayPlugin = Plugin<Context, Surroundings>;

/** Authenticates before the body is read: a request without credentials costs nothing more. */
export function authenticates(formatError: FormatError): GatewayPlugin {
  return {
    async onRequestParse({ serverContext: { authenticate, acceptLanguage } }) {
      try {
        await authenticate();
      } catch (error) {
        throw formatError(error, acceptLanguage);
      }
    },
  };
}

/** Rejects, before any other work, what a page of another origin made a browser send. */
export function refusesForeignPages(listedOrigins: readonly string[]): GatewayPlugin {
  return {
    onRequestParse({ request: { headers } }) {
      const originHeaders = {
        origin: headers.get("origin") ?? undefined,
        host: headers.get("host") ?? undefined,
        secFetchSite: headers.get("sec-fetch-site") ?? undefined,
      };
      if (!isCrossOrigin(originHeaders, listedOrigins)) return;
      throw new GatewayError("PERMISSION_DENIED", refusedOrigin, { reason: "FOREIGN_ORIGIN" });
    },
  };
}

/**
 * Accepts only JSON bodies that are not compressed. Forms, plain text and bodies without a type are
 * rejected: a page of another origin can make a browser send those without a CORS preflight.
 */
export function takesJsonOnly(): GatewayPlugin {
  return {
    onRequestParse({ request, requestParser, setRequestParser, fetchAPI }) {
      const { method, headers } = request;
      if (!isUtf8Address(request.url)) throw notUtf8("the address must be percent-encoded UTF-8");
      if (method !== "POST") return;
      if (!jsonType.test(headers.get("content-type") ?? "")) {
        throw unsupported("the body must be application/json");
      }
      if (!/^(?:identity)?$/i.test(headers.get("content-encoding") ?? "")) {
        throw unsupported("the body must not be compressed: send it without content-encoding");
      }
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
  };
}

function notUtf8(message: string): RequestError {
  return new RequestError(message, "BAD_REQUEST", { status: 400 });
}

function unsupported(message: string): RequestError {
  return new RequestError(message, "UNSUPPORTED_MEDIA_TYPE", { status: 415 });
}

/**
 * Replaces Yoga's error for a body that is not JSON, whose status would be 200 for clients that
 * accept only `application/json`. A body that ends early gets the same error.
 */
async function orNotJson<T>(parse: () => Promise<T>): Promise<T> {
  try {
    return await parse();
  } catch (error) {
    if (error instanceof GraphQLError && !error.extensions.http?.spec) throw error;
    throw new RequestError("the body must be JSON", "BAD_REQUEST", { status: 400 });
  }
}

const jsonType = /^application\/json *(?:;|$)/i;

/**
 * Finds the document that a request names by its id or text; rejects it if only trusted documents
 * are allowed and it is none. The WebSocket protocol calls `documentOf` itself.
 */
export function findsDocuments(documentOf: ReturnType<typeof createDocumentOf>): GatewayPlugin {
  return {
    onParams({ params, setParams, request }) {
      if (typeof params !== "object" || params === null || Array.isArray(params)) return;
      const { documentId, ...others } = params as typeof params & { documentId?: unknown };
      const inUrl = URL.parse(request.url)?.searchParams.get("documentId");
      const query = documentOf({ ...others, documentId: documentId ?? inUrl });
      setParams(query === undefined ? others : { ...others, query });
    },
  };
}

/** Refuses invalid documents, and operations that are beyond a limit. */
export function limitsOperations(findDocument: FindDocument): GatewayPlugin {
  const refusals = new WeakMap<DocumentNode, Refusal>();
  return {
    onParse({ params, setParseFn }) {
      setParseFn(() => {
        const { document, refused } = findDocument(String(params.source));
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
    onExecute({ args, setResultAndStopExecution }) {
      const errors = refusalsOf(args);
      if (errors.length > 0) setResultAndStopExecution({ errors });
    },
    onSubscribe({ args, setResultAndStopExecution }) {
      const errors = refusalsOf(args);
      if (errors.length > 0) setResultAndStopExecution({ errors });
    },
  };
}

/** Errors of a valid operation: invalid variables, or too high a cost. */
export function refusalsOf(args: ExecutionArgs): readonly GraphQLError[] {
  const { schema, document, operationName, variableValues } = args;
  const operation = getOperationAST(document, operationName);
  if (!operation) return [];
  const variables = variableValues ?? {};
  const faults = faultsOfVariables(schema, operation, variables);
  if (faults.length > 0) return faults;
  if (costOf(schema, document, operation, variables) <= limits.cost) return [];
  return [tooComplex(`may cost more than ${limits.cost}: ask for fewer objects, or less of each`)];
}

/** Rejects operations whose `Idempotency-Key` could name more than one mutation. */
export function refusesAmbiguousIdempotencyKey(): GatewayPlugin {
  return {
    onExecute({ args, setResultAndStopExecution }) {
      const errors = ambiguityOf(args);
      if (errors.length > 0) setResultAndStopExecution({ errors });
    },
  };
}

/** An `Idempotency-Key` names one call, so an operation with several mutations is rejected. */
export function ambiguityOf(args: ExecutionArgs): readonly GraphQLError[] {
  const { document, operationName } = args;
  const { call } = args.contextValue as Context;
  if (call.idempotencyKey === undefined) return [];
  const operation = getOperationAST(document, operationName);
  if (operation?.operation !== "mutation") return [];
  if (rootFieldsOf(document, operation).size < 2) return [];
  const message = "Idempotency-Key goes with one mutation: send them one by one";
  return [new RequestError(message, "BAD_USER_INPUT", { status: 400 })];
}

/** Executes with GraphQL.js, as the fast path does, so that error texts are identical. */
export function executesByGraphqlJs(formatError: FormatError): GatewayPlugin {
  return {
    onExecute({ setExecuteFn }) {
      setExecuteFn(async (args) =>
        concluded(await executeOperation(args), args.contextValue as Surroundings, formatError),
      );
    },
  };
}

/**
 * Executes an operation. If it cannot begin, for example because a required variable is missing,
 * the result is a request error: see `RequestErrorOptions.ofGraphql`.
 */
export function executeOperation(args: ExecutionArgs): ReturnType<typeof execute> {
  const result = execute(args);
  if (result instanceof Promise || "data" in result) return result;
  const errors = result.errors?.map(({ message, nodes, extensions }) => {
    const http = { status: 400, spec: true };
    return new GraphQLError(message, { nodes, extensions: { ...extensions, http } });
  });
  return errors ? { errors } : result;
}

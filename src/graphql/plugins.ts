import {
  type DocumentNode,
  type ExecutionArgs,
  GraphQLError,
  getOperationAST,
  Kind,
  type parse as parseDocument,
  type SelectionSetNode,
} from "graphql";
import type { Plugin } from "graphql-yoga";
import { GatewayError } from "../errors.ts";
import type { Context, Surroundings } from "./context.ts";
import { limits } from "./limits.ts";
import { costOf } from "./operation-cost.ts";
import { checkShape, tooComplex } from "./operation-shape.ts";
import { isForeign } from "./transport/browser-origin.ts";
import type { createDocumentOf } from "./trusted-documents.ts";

type GatewayPlugin = Plugin<Context, Surroundings>;

/**
 * Reads who is calling before the body is read: a request without credentials costs nothing more.
 */
export function authenticates(): GatewayPlugin {
  return {
    async onRequestParse({ serverContext }) {
      await serverContext.authenticate();
    },
  };
}

/** Refuses what a page of another origin made a browser send, before anything else is done. */
export function refusesForeignPages(listedOrigins: readonly string[]): GatewayPlugin {
  return {
    onRequestParse({ request: { headers } }) {
      const told = {
        origin: headers.get("origin") ?? undefined,
        host: headers.get("host") ?? undefined,
        secFetchSite: headers.get("sec-fetch-site") ?? undefined,
      };
      if (!isForeign(told, listedOrigins)) return;
      throw new GatewayError("PERMISSION_DENIED", "pages of this origin may not call", {
        reason: "FOREIGN_ORIGIN",
      });
    },
  };
}

/**
 * Takes JSON bodies only, and as they are: what is compressed is not opened. Forms, plain text and
 * bodies without a type are what a foreign page can make a browser send without asking first.
 */
export function takesJsonOnly(): GatewayPlugin {
  return {
    onRequestParse({ request: { method, headers }, requestParser, setRequestParser }) {
      if (method !== "POST") return;
      if (!jsonType.test(headers.get("content-type") ?? "")) {
        throw unsupported("the body must be application/json");
      }
      if (!/^(?:identity)?$/i.test(headers.get("content-encoding") ?? "")) {
        throw unsupported("the body must not be compressed: send it without content-encoding");
      }
      if (requestParser) setRequestParser(async (request) => orNotJson(requestParser(request)));
    },
  };
}

function unsupported(message: string): GraphQLError {
  return new GraphQLError(message, {
    extensions: { code: "UNSUPPORTED_MEDIA_TYPE", http: { status: 415 } },
  });
}

/** Yoga has a status of the GraphQL kind for what is no JSON: 200, to those who take JSON alone. */
async function orNotJson<T>(parsed: T | PromiseLike<T>): Promise<T> {
  try {
    return await parsed;
  } catch (error) {
    if (!(error instanceof GraphQLError && error.extensions.http?.spec)) throw error;
    throw new GraphQLError("the body must be JSON", {
      extensions: { code: "BAD_REQUEST", http: { status: 400 } },
    });
  }
}

const jsonType = /^application\/json *(?:;|$)/i;

/** Runs the documents that requests name by an id, or those alone. WebSockets ask `documentOf`. */
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

/** Holds operations to the limits, before their validation and before their execution. */
export function limitsOperations(introspection: boolean): GatewayPlugin {
  const checked = new WeakSet<DocumentNode>();
  return {
    onParse({ params, parseFn, setParseFn }) {
      if (String(params.source).length > limits.documentLength) {
        throw tooComplex(`is longer than ${limits.documentLength} characters`);
      }
      setParseFn((source, options) => parseShort(parseFn, source, options));
      return ({ result }) => {
        if (!result || result instanceof Error || checked.has(result)) return;
        checkShape(result, introspection);
        checked.add(result);
      };
    },
    onExecute({ args, setResultAndStopExecution }) {
      const refused = costlyRefusal(args);
      if (refused) setResultAndStopExecution({ errors: [refused] });
    },
    onSubscribe({ args, setResultAndStopExecution }) {
      const refused = costlyRefusal(args);
      if (refused) setResultAndStopExecution({ errors: [refused] });
    },
  };
}

function costlyRefusal(args: ExecutionArgs): GraphQLError | undefined {
  const { schema, document, operationName, variableValues } = args;
  const operation = getOperationAST(document, operationName);
  if (!operation) return undefined;
  if (costOf(schema, document, operation, variableValues ?? {}) <= limits.cost) return undefined;
  return tooComplex(`may cost more than ${limits.cost}: ask for fewer objects, or less of each`);
}

function parseShort(parse: typeof parseDocument, ...[source, options]: Parameters<typeof parse>) {
  try {
    return parse(source, { ...options, maxTokens: limits.tokens });
  } catch (error) {
    if (!(error instanceof GraphQLError) || !/contains more that? \d+ tokens/.test(error.message)) {
      throw error;
    }
    throw tooComplex(`has more than ${limits.tokens} tokens`);
  }
}

/** Gives the errors of validation the form that all others have. */
export function formatsValidationErrors(format: (error: unknown) => GraphQLError): GatewayPlugin {
  return {
    onValidate() {
      return ({ valid, result, setResult }) => {
        if (valid) return;
        for (const { extensions } of result) extensions.code ??= "GRAPHQL_VALIDATION_FAILED";
        setResult(result.map(format));
      };
    },
  };
}

/** An `Idempotency-Key` names one call: with several mutations in one operation, none is run. */
export function refusesAmbiguousIdempotencyKey(): GatewayPlugin {
  return {
    onExecute({ args, setResultAndStopExecution }) {
      const { document, operationName, contextValue } = args;
      if (contextValue.call.idempotencyKey === undefined) return;
      const operation = getOperationAST(document, operationName);
      if (operation?.operation !== "mutation") return;
      if (rootFields(operation.selectionSet, document) < 2) return;
      setResultAndStopExecution({
        errors: [
          new GraphQLError("Idempotency-Key goes with one mutation: send them one by one", {
            extensions: { code: "BAD_USER_INPUT", http: { status: 400 } },
          }),
        ],
      });
    },
  };
}

/** Fields of a selection, with those of its fragments. Validation has refused fragment cycles. */
function rootFields(selections: SelectionSetNode, document: DocumentNode): number {
  let count = 0;
  for (const selection of selections.selections) {
    if (selection.kind === Kind.FIELD) count += 1;
    else if (selection.kind === Kind.INLINE_FRAGMENT) {
      count += rootFields(selection.selectionSet, document);
    } else {
      const fragment = document.definitions.find(
        (definition) =>
          definition.kind === Kind.FRAGMENT_DEFINITION &&
          definition.name.value === selection.name.value,
      );
      if (fragment && "selectionSet" in fragment) {
        count += rootFields(fragment.selectionSet, document);
      }
    }
  }
  return count;
}

import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  executeSubscriptionEvent,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  type ValidatedSubscriptionArgs,
  validateSubscriptionArgs,
} from "graphql";
import { type FetchAPI, processRegularResult } from "graphql-yoga";
import type { Caller } from "../auth/caller.ts";
import type { Core } from "../core/core.ts";
import { isUtf8Address } from "../net/address-text.ts";
import { isCrossOrigin, originHeadersOf } from "../net/browser-origin.ts";
import { plainAuthority } from "../net/request-head.ts";
import { compileOperation } from "./compiled-operation.ts";
import { type Context, concluded, createContext, type Surroundings } from "./context.ts";
import type { DocumentCache } from "./document-cache.ts";
import type { FormatError } from "./errors.ts";
import type { FindDocument } from "./find-document.ts";
import { limits } from "./limits.ts";
import { recordError, recordOperation } from "./observed.ts";
import type { OperationRecord } from "./operation-record.ts";
import { graphqlType, type Overload } from "./overload.ts";
import { ambiguityOf, executeOperation, refusalsOf } from "./plugins.ts";
import type { RequestBody } from "./request-body.ts";
import { resultsOf } from "./shared-results.ts";
import { formatOf, takesParts } from "./transport/event-stream.ts";
import { eventStreamType, type StreamFormat } from "./transport/stream-format.ts";
import type { createDocumentOf } from "./trusted-documents.ts";

export interface FastPathOptions {
  readonly core: Core;
  readonly schema: GraphQLSchema;
  readonly corsOrigins: readonly string[];
  readonly documentOf: ReturnType<typeof createDocumentOf>;
  readonly documents: DocumentCache;
  readonly findDocument: FindDocument;
  readonly formatError: FormatError;
  readonly overload: Pick<Overload, "refusalsOf">;
}

/** A response that is ready to be written. */
export interface FastAnswer {
  /** Whether the result has no errors: then no field of the operation still runs. */
  readonly whole: boolean;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Serves ordinary requests without Yoga: nearly all are a JSON POST with one valid query or
 * mutation. It takes the same steps as Yoga with the same functions, but without fetch objects
 * between them: identify, receive, decode, find the document, check, execute, mask, encode. Any
 * other request goes to Yoga. `test/graphql/fast-path.test.ts` sends the same requests both
 * ways and compares the responses.
 */
export interface FastPath {
  /** The media type of the response if this path may serve a request; undefined if Yoga must. */
  answerTypeOf(request: IncomingMessage): string | undefined;
  /** Serves a request; undefined if Yoga must after all, which then takes the same body. */
  answer(
    requestBody: RequestBody,
    answerType: string,
    surroundings: Surroundings,
  ): Promise<FastAnswer | undefined>;
  /** The stream format if this path may serve a subscription; undefined if Yoga must. */
  streamFormatOf(request: IncomingMessage): StreamFormat<ExecutionResult> | undefined;
  /**
   * The results of a subscription, with errors formatted for its client. Undefined if Yoga must
   * serve the request after all: it is not a subscription, or cannot begin.
   */
  subscribe(
    request: IncomingMessage,
    requestBody: RequestBody,
    surroundings: Surroundings,
  ): Promise<AsyncIterator<ExecutionResult> | undefined>;
}

export function createFastPath(options: FastPathOptions): FastPath {
  const { core, schema, corsOrigins, documentOf, documents, findDocument } = options;
  const { formatError, overload } = options;
  // Freed with their documents.
  const executes = new WeakMap<OperationDefinitionNode, Execute>();

  /** The query or mutation in a body; undefined for a subscription, or what Yoga would reject. */
  function operationOf(body: Buffer): Operation | undefined {
    const found = find(paramsOf(body));
    if (!found || found.operation.operation === "subscription") return undefined;
    const { args, operation } = found;
    return { args, execute: executeOf(args.document, operation) };
  }

  function find(params: Params | undefined) {
    const text = params && documentTextOf(params, documentOf);
    const document = text === undefined ? undefined : findDocument(text).document;
    if (!params || !document) return undefined;
    const { variables: variableValues, operationName } = params;
    const operation = getOperationAST(document, operationName);
    return operation && { operation, args: { schema, document, variableValues, operationName } };
  }

  function executeOf(document: DocumentNode, operation: OperationDefinitionNode): Execute {
    const known = executes.get(operation);
    if (known) return known;
    const compiled = compileOperation(schema, document, operation, (fields) =>
      documents.addFields(document, fields),
    );
    const execute: Execute = (args) => compiled?.(args) ?? executeOperation(args);
    executes.set(operation, execute);
    return execute;
  }

  async function run(
    args: ExecutionArgs & { contextValue: Surroundings & Context },
    execute: Execute,
  ): Promise<ExecutionResult> {
    recordOperation(args.contextValue.record, args);
    const refused = [refusalsOf, ambiguityOf, overload.refusalsOf];
    for (const errorsOf of refused) {
      const errors = errorsOf(args);
      if (errors.length > 0) return { errors };
    }
    const result = concluded(await execute(args), args.contextValue, formatError);
    recordError(args.contextValue.record, result);
    return result;
  }

  return {
    answerTypeOf(request) {
      if (!isOrdinary(request) || isCrossOrigin(originHeadersOf(request.headers), corsOrigins))
        return undefined;
      return answerTypeOf(request.headers.accept);
    },
    async answer(requestBody, answerType, surroundings) {
      const { record } = surroundings.lifetime;
      record.begin();
      let caller: Caller;
      try {
        caller = await surroundings.authenticate();
      } catch {
        return undefined;
      }
      const body = await bodyOf(requestBody);
      const operation = body && operationOf(body);
      if (!operation) return undefined;
      const contextValue = { ...surroundings, ...createContext(core, caller, surroundings) };
      let result: ExecutionResult;
      try {
        result = await run({ ...operation.args, contextValue }, operation.execute);
      } catch (error) {
        result = { errors: [formatError(error, surroundings.acceptLanguage)] };
      }
      recordError(record, result);
      return encode(result, answerType);
    },
    streamFormatOf(request) {
      const isOfUrl = request.method === "GET" && isOrdinaryGet(request);
      if (!isOfUrl && !isOrdinary(request)) return undefined;
      if (isCrossOrigin(originHeadersOf(request.headers), corsOrigins)) return undefined;
      const { accept = "" } = request.headers;
      return accept === eventStreamType || takesParts(accept) ? formatOf(accept, true) : undefined;
    },
    async subscribe(request, requestBody, surroundings) {
      const { record, slot } = surroundings.lifetime;
      record.begin();
      let caller: Caller;
      try {
        caller = await surroundings.authenticate();
      } catch {
        return undefined;
      }
      const isOfUrl = request.method === "GET";
      const body = isOfUrl ? undefined : await bodyOf(requestBody);
      return begin(
        find(isOfUrl ? paramsOfUrl(request.url ?? "") : body && paramsOf(body)),
        () => ({ ...surroundings, ...createContext(core, caller, surroundings) }),
        slot?.moneyOnly === true,
      );
    },
  };

  function begin(
    found: ReturnType<typeof find>,
    createContextValue: () => Context,
    isShed: boolean,
  ): AsyncIterator<ExecutionResult> | undefined {
    if (found?.operation.operation !== "subscription" || isShed) return undefined;
    const contextValue = createContextValue();
    const args = { ...found.args, contextValue };
    const { record, live } = contextValue;
    recordOperation(record, args);
    if (refusalsOf(args).length > 0) return undefined;
    const validated = validateSubscriptionArgs(args);
    if (!("operation" in validated)) return undefined;
    const source = createSourceEventStream(validated);
    if (!(Symbol.asyncIterator in source)) return undefined;
    live.resultOf = resultsOf(args, documents);
    return shownResults(source[Symbol.asyncIterator](), validated, record, formatError);
  }
}

/** Executes a subscription's events into results for its client, within the operation's span. */
function shownResults(
  source: AsyncIterator<unknown>,
  validated: ValidatedSubscriptionArgs,
  record: OperationRecord,
  formatError: FormatError,
): AsyncIterator<ExecutionResult> {
  const show = async (): Promise<IteratorResult<ExecutionResult>> => {
    const { done, value: rootValue } = await source.next();
    if (done) return { done, value: undefined };
    const result = await executeSubscriptionEvent({ ...validated, rootValue });
    recordError(record, result);
    const { errors } = result;
    const shown = errors?.map((error) => formatError(error));
    return { value: shown ? { ...result, errors: shown } : result };
  };
  return {
    next: () => record.span.run(show),
    async return() {
      await source.return?.();
      return { done: true, value: undefined };
    },
  };
}

interface Operation {
  readonly args: Pick<ExecutionArgs, "schema" | "document" | "variableValues" | "operationName">;
  readonly execute: Execute;
}

type Execute = (args: ExecutionArgs) => ExecutionResult | Promise<ExecutionResult>;

/** Whether the head of a POST is such that this path may serve it. */
function isOrdinary({ method, url = "", headers }: IncomingMessage): boolean {
  if (method !== "POST" || url !== "/graphql" || headers.expect !== undefined) return false;
  if (!plainAuthority.test(headers.host ?? "")) return false;
  if (headers["content-encoding"] || headers["access-control-request-headers"]) return false;
  const length = headers["content-length"];
  if (length === undefined || !/^\d+$/.test(length)) return false;
  if (Number(length) === 0 || Number(length) > limits.messageBytes) return false;
  return jsonType.test(headers["content-type"] ?? "");
}

/** The same for a GET, as an EventSource sends it. */
function isOrdinaryGet({ url = "", headers }: IncomingMessage): boolean {
  if (!plainUrl.test(url) || !isUtf8Address(url) || headers.expect !== undefined) return false;
  if (headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined) {
    return false;
  }
  return plainAuthority.test(headers.host ?? "");
}

const plainUrl = /^\/graphql\?[!-"$-~]+$/;

const jsonType = /^application\/json(?:; *charset=utf-8)?$/;

/** The response type by the first type in `Accept`; undefined if a type is unsupported here. */
function answerTypeOf(accept = "*/*"): string | undefined {
  const known = answerTypes.get(accept);
  if (known !== undefined || !plainAccept.test(accept)) return known;
  return accept.startsWith(graphqlType) ? graphqlType : "application/json";
}

const plainAccept =
  /^(?:(?:application\/graphql-response\+json|application\/json|\*\/\*)(?:; *q=[\d.]{1,5})?(?:, *|$))+$/;
/** The `Accept` headers of most clients. */
const answerTypes: ReadonlyMap<string, string> = new Map([
  ["*/*", "application/json"],
  ["application/json", "application/json"],
  [graphqlType, graphqlType],
]);

/** The body; undefined if Yoga has to report why there is none. */
async function bodyOf(body: RequestBody): Promise<Buffer | undefined> {
  try {
    return await body.take();
  } catch {
    return undefined;
  }
}

interface Params {
  readonly query?: string | null;
  readonly variables?: Readonly<Record<string, unknown>> | null;
  readonly operationName?: string | null;
  readonly extensions?: Readonly<Record<string, unknown>> | null;
  readonly documentId?: unknown;
}

/** The parameters in a JSON body; undefined if a member is unknown or has a wrong type. */
function paramsOf(body: Buffer): Params | undefined {
  let params: unknown;
  const text = body.toString();
  if (text.includes("\ufffd") && !isUtf8(body)) return undefined;
  try {
    params = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(params)) return undefined;
  for (const name in params) {
    if (!Object.hasOwn(isOf, name) || !isOf[name as keyof Params](params[name])) return undefined;
  }
  return params;
}

/** The parameters in a URL; undefined if Yoga has to report what is wrong with it. */
function paramsOfUrl(url: string): Params | undefined {
  const search = new URLSearchParams(url.slice(url.indexOf("?") + 1));
  const textOf = (name: string) => search.get(name) || undefined;
  const jsonOf = (name: string) => JSON.parse(textOf(name) ?? "null");
  let params: Readonly<Record<keyof Params, unknown>>;
  try {
    params = {
      query: textOf("query"),
      operationName: textOf("operationName"),
      documentId: search.get("documentId"),
      variables: jsonOf("variables") ?? undefined,
      extensions: jsonOf("extensions") ?? undefined,
    };
  } catch {
    return undefined;
  }
  const { variables = null, extensions = null } = params;
  return isMap(variables) && isMap(extensions) ? (params as Params) : undefined;
}

const isText = (value: unknown) => value === null || typeof value === "string";
const isMap = (value: unknown) => value === null || isObject(value);

const isOf: Readonly<Record<keyof Params, (value: unknown) => boolean>> = {
  query: isText,
  variables: isMap,
  operationName: isText,
  extensions: isMap,
  documentId: isText,
};

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function documentTextOf(
  params: Params,
  documentOf: FastPathOptions["documentOf"],
): string | undefined {
  try {
    return documentOf(params);
  } catch {
    return undefined;
  }
}

/** Writes a result with Yoga's own function: status, headers and JSON. */
function encode(result: ExecutionResult, answerType: string): FastAnswer {
  const encoded = processRegularResult(result, plainFetch, answerType) as unknown as Encoded;
  const { status, headers, body } = encoded;
  return { status, headers, body, whole: result.errors === undefined };
}

type Encoded = Omit<FastAnswer, "whole">;

const plainFetch = {
  Response: class {
    readonly body: string;
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;

    constructor(body: string, init: Omit<Encoded, "body">) {
      this.body = body;
      this.status = init.status;
      this.headers = init.headers;
    }
  },
} as unknown as FetchAPI;

import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import {
  type ExecutionArgs,
  type ExecutionResult,
  getOperationAST,
  type OperationTypeNode,
} from "graphql";
import { type FetchAPI, processRegularResult } from "graphql-yoga";
import type { Caller } from "../auth/caller.ts";
import { isUtf8Address } from "../net/address-text.ts";
import { isCrossOrigin, originHeadersOf } from "../net/browser-origin.ts";
import { createContext } from "./context.ts";
import type { Edge } from "./edge.ts";
import { limits } from "./limits.ts";
import type { Operation } from "./operation.ts";
import { graphqlType } from "./overload.ts";
import type { RequestBody } from "./request-body.ts";
import { formatOf, takesParts } from "./transport/event-stream.ts";
import type { Answer } from "./transport/send.ts";
import { eventStreamType, type StreamFormat } from "./transport/stream-format.ts";

/**
 * Serves ordinary requests without Yoga: nearly all are a JSON POST with one valid query or
 * mutation. It reads and writes them without fetch objects; what it runs between the two are the
 * same `Operations` that Yoga runs. Any other request goes to Yoga. `test/graphql/fast-path.test.ts` sends the same requests both
 * ways and compares the responses.
 */
export interface FastPath {
  /** The media type of the response if this path may serve a request; undefined if Yoga must. */
  answerTypeOf(request: IncomingMessage): string | undefined;
  /** Serves a request; undefined if Yoga must after all, which then takes the same body. */
  answer(
    requestBody: Pick<RequestBody, "take">,
    answerType: string,
    operation: Operation,
  ): Promise<Answer | undefined>;
  /** The stream format if this path may serve a subscription; undefined if Yoga must. */
  streamFormatOf(request: IncomingMessage): StreamFormat<ExecutionResult> | undefined;
  /**
   * The results of a subscription, with errors formatted for its client. Undefined if Yoga must
   * serve the request after all: it is not a subscription, or cannot begin.
   */
  subscribe(
    request: IncomingMessage,
    requestBody: Pick<RequestBody, "take">,
    operation: Operation,
  ): Promise<AsyncIterableIterator<ExecutionResult> | undefined>;
}

export function createFastPath(
  edge: Pick<Edge, "core" | "schema" | "corsOrigins" | "documentOf" | "operations">,
): FastPath {
  const { core, schema, corsOrigins, documentOf, operations } = edge;

  /**
   * What a request of a known caller asks for. Undefined for what Yoga would reject, and for an
   * operation that is not taken.
   */
  async function find(
    operation: Operation,
    read: () => Params | undefined | Promise<Params | undefined>,
    takes: (type: OperationTypeNode) => boolean,
  ): Promise<ExecutionArgs | undefined> {
    operation.begin();
    let caller: Caller;
    try {
      caller = await operation.authenticate();
    } catch {
      return undefined;
    }
    const params = await read();
    const text = params && documentTextOf(params, documentOf);
    const document = text === undefined ? undefined : operations.find(text).document;
    if (!params || !document) return undefined;
    const { variables: variableValues, operationName } = params;
    const node = getOperationAST(document, operationName);
    if (!node || !takes(node.operation)) return undefined;
    const contextValue = createContext(core, caller, operation);
    return { schema, document, variableValues, operationName, contextValue };
  }

  return {
    answerTypeOf(request) {
      if (!isOrdinary(request) || isCrossOrigin(originHeadersOf(request.headers), corsOrigins))
        return undefined;
      return answerTypeOf(request.headers.accept);
    },
    async answer(requestBody, answerType, operation) {
      const takes = (type: OperationTypeNode) => type !== "subscription";
      const args = await find(operation, () => paramsOf(requestBody), takes);
      return args && encode(await operations.run(args), answerType);
    },
    streamFormatOf(request) {
      const isOfUrl = request.method === "GET" && isOrdinaryGet(request);
      if (!isOfUrl && !isOrdinary(request)) return undefined;
      if (isCrossOrigin(originHeadersOf(request.headers), corsOrigins)) return undefined;
      const { accept = "" } = request.headers;
      return accept === eventStreamType || takesParts(accept) ? formatOf(accept, true) : undefined;
    },
    async subscribe({ method, url = "" }, requestBody, operation) {
      const isOfUrl = method === "GET";
      const read = () => (isOfUrl ? paramsOfUrl(url) : paramsOf(requestBody));
      // Yoga words the refusal of a stream while only calls that move money are admitted.
      const takes = (type: OperationTypeNode) =>
        type === "subscription" && !operation.slot.moneyOnly;
      const args = await find(operation, read, takes);
      const results = args && (await operations.subscribe(args));
      return results && Symbol.asyncIterator in results ? results : undefined;
    },
  };
}

/** Whether the head of a POST is such that this path may serve it. */
function isOrdinary({ method, url = "", headers }: IncomingMessage): boolean {
  if (method !== "POST" || url !== "/graphql" || headers.expect !== undefined) return false;
  if (headers["content-encoding"] || headers["access-control-request-headers"]) return false;
  const length = headers["content-length"];
  if (length === undefined || !/^\d+$/.test(length)) return false;
  if (Number(length) === 0 || Number(length) > limits.messageBytes) return false;
  return jsonType.test(headers["content-type"] ?? "");
}

/** The same for a GET, as an EventSource sends it. */
function isOrdinaryGet({ url = "", headers }: IncomingMessage): boolean {
  if (!plainUrl.test(url) || !isUtf8Address(url) || headers.expect !== undefined) return false;
  return headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;
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

interface Params {
  readonly query?: string | null;
  readonly variables?: Readonly<Record<string, unknown>> | null;
  readonly operationName?: string | null;
  readonly extensions?: Readonly<Record<string, unknown>> | null;
  readonly documentId?: unknown;
}

/**
 * The parameters in a JSON body. Undefined if Yoga has to report why there is none, that a member
 * is unknown or that it has a wrong type.
 */
async function paramsOf(requestBody: Pick<RequestBody, "take">): Promise<Params | undefined> {
  let params: unknown;
  try {
    const body = await requestBody.take();
    const text = body.toString();
    if (text.includes("\ufffd") && !isUtf8(body)) return undefined;
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

function documentTextOf(params: Params, documentOf: Edge["documentOf"]): string | undefined {
  try {
    return documentOf(params);
  } catch {
    return undefined;
  }
}

/** Writes a result with Yoga's own function: status, headers and JSON. */
function encode(result: ExecutionResult, answerType: string): Answer {
  const encoded = processRegularResult(result, plainFetch, answerType) as unknown as Encoded;
  const { status, headers, body } = encoded;
  // A result without errors has waited for every field.
  return { status, headers, body, whole: result.errors === undefined };
}

type Encoded = Omit<Answer, "whole">;

const plainFetch = {
  Response: class {
    readonly body: string;
    readonly status: number;
    readonly headers: Encoded["headers"];

    constructor(body: string, init: Omit<Encoded, "body">) {
      this.body = body;
      this.status = init.status;
      this.headers = init.headers;
    }
  },
} as unknown as FetchAPI;

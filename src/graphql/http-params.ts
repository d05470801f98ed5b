import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isUtf8Address } from "../net/address-text.ts";
import type { Edge } from "./edge.ts";
import type { TakeBody } from "./request-body.ts";
import { RequestError } from "./request-error.ts";
import { namedOf, type Variables } from "./variables.ts";

/** What a request asks for. */
export interface Params {
  /** The document's text. */
  readonly query: string;
  readonly variables: Variables | null | undefined;
  readonly operationName: string | null | undefined;
}

/** Parameters as they were sent: their types are not known. */
type Sent = Readonly<Record<string, unknown>>;

/**
 * The parameters of a GET or POST, by GraphQL over HTTP, with the document that they name.
 * @throws RequestError for what is wrong with them, and the errors of `TakeBody`
 */
export async function paramsOf(
  { method, url = "", headers }: IncomingMessage,
  takeBody: TakeBody,
  documentOf: Edge["documentOf"],
): Promise<Params> {
  if (!isUtf8Address(url)) throw badRequest("the address must be percent-encoded UTF-8");
  const search = new URLSearchParams(url.slice(url.indexOf("?") + 1 || url.length));
  if (method === "POST") refuseOtherBodies(headers);
  const sent = method === "POST" ? await ofBody(takeBody) : ofSearch(search);
  const { documentId = null, ...params } = sent;
  const named = { ...params, documentId: documentId ?? search.get("documentId") };
  return checked({ ...params, query: documentOf(named) ?? params.query });
}

/**
 * Accepts only JSON bodies that are not compressed. Forms, plain text and bodies without a type are
 * rejected: a page of another origin can make a browser send those without a CORS preflight.
 */
function refuseOtherBodies(headers: IncomingHttpHeaders): void {
  if (!jsonType.test(headers["content-type"] ?? "")) {
    throw unsupported("the body must be application/json");
  }
  if (!/^(?:identity)?$/i.test(headers["content-encoding"] ?? "")) {
    throw unsupported("the body must not be compressed: send it without content-encoding");
  }
}

const jsonType = /^application\/json *(?:;|$)/i;

async function ofBody(takeBody: TakeBody): Promise<Sent> {
  const bytes = await takeBody();
  const text = bytes.toString();
  // A replacement character stands for invalid UTF-8, or was sent (RFC 8259, section 8.1).
  if (text.includes("\ufffd") && !isUtf8(bytes)) throw badRequest("the body must be UTF-8");
  const sent = jsonOf(text, "the body must be JSON");
  if (Array.isArray(sent)) throw badRequest("Batching is not supported.");
  if (!isObject(sent)) throw badRequest("the body must be a JSON object");
  return sent;
}

function ofSearch(search: URLSearchParams): Sent {
  const textOf = (name: string) => search.get(name) || undefined;
  const parsedOf = (name: string) =>
    jsonOf(textOf(name) ?? "null", "variables and extensions must be JSON");
  return {
    query: textOf("query"),
    operationName: textOf("operationName"),
    variables: parsedOf("variables"),
    extensions: parsedOf("extensions"),
  };
}

/** The parser's own message would quote the text. */
function jsonOf(text: string, otherwise: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest(otherwise);
  }
}

function checked({ query, variables, operationName, extensions, ...others }: Sent): Params {
  for (const name in others) {
    if ((others[name] ?? undefined) === undefined) continue;
    throw badRequest(`Unexpected parameter${namedOf(name)} in the request body.`);
  }
  if (query === null || query === undefined) {
    const options = { status: 400, ofGraphql: true };
    throw new RequestError("Must provide query string.", "BAD_REQUEST", options);
  }
  if (typeof query !== "string") throw badRequest('"query" must be a string');
  for (const [name, value] of Object.entries({ variables, extensions })) {
    if (!isObject(value ?? {})) throw badRequest(`"${name}" must be an object`);
  }
  return { query, variables, operationName } as Params;
}

function isObject(value: unknown): value is Sent {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function badRequest(message: string): RequestError {
  return new RequestError(message, "BAD_REQUEST", { status: 400 });
}

function unsupported(message: string): RequestError {
  return new RequestError(message, "UNSUPPORTED_MEDIA_TYPE", { status: 415 });
}

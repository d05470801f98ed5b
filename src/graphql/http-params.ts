import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isUtf8Address } from "../net/address-text.ts";
import type { Slot } from "../net/admission.ts";
import { excessOfJson } from "../net/bounded-json.ts";
import type { Body } from "../net/intake.ts";
import { isJsonObject, isJsonType } from "../net/json.ts";
import type { Edge } from "./edge.ts";
import { RequestError } from "./errors.ts";
import { limits } from "./limits.ts";
import { namedOf, type Variables } from "./variables.ts";

/** What a request asks for. */
export interface Params {
  /** The document's text. */
  readonly query: string;
  readonly variables?: Variables | null | undefined;
  readonly operationName?: string | null | undefined;
}

/** Parameters as they were sent: their types are not known. */
type Sent = Readonly<Record<string, unknown>>;

/**
 * The parameters of a GET or POST, by GraphQL over HTTP, with the document that they name.
 * @throws RequestError for what is wrong with them, GatewayError for a body that was dropped to free
 * memory or whose client has left
 */
export async function paramsOf(
  request: IncomingMessage,
  body: Body,
  slot: Slot,
  { documentOf }: Pick<Edge, "documentOf">,
): Promise<Params> {
  const { method, url = "", headers } = request;
  if (!isUtf8Address(url)) throw new RequestError("the address must be percent-encoded UTF-8");
  const search = new URLSearchParams(url.slice(url.indexOf("?") + 1 || url.length));
  if (method === "POST") refuseOtherBodies(headers);
  const maxBytes = limits.messageBytes;
  const sent =
    method === "POST" ? ofBody(await body.whole({ maxBytes, slot }, tooLarge)) : ofSearch(search);
  const { documentId = null, ...params } = sent;
  const named = { ...params, documentId: documentId ?? search.get("documentId") };
  return checked({ ...params, query: documentOf(named) ?? params.query });
}

function tooLarge(): RequestError {
  const message = `the body must not exceed ${limits.messageBytes} bytes`;
  return new RequestError(message, "BAD_REQUEST", { status: 413 });
}

/**
 * Accepts only JSON bodies that are not compressed. Forms, plain text and bodies without a type are
 * rejected: a page of another origin can make a browser send those without a CORS preflight.
 */
function refuseOtherBodies(headers: IncomingHttpHeaders): void {
  if (!isJsonType(headers["content-type"])) {
    throw new RequestError("the body must be application/json", ...unsupported);
  }
  if (!/^(?:identity)?$/i.test(headers["content-encoding"] ?? "")) {
    const message = "the body must not be compressed: send it without content-encoding";
    throw new RequestError(message, ...unsupported);
  }
}

const unsupported = ["UNSUPPORTED_MEDIA_TYPE", { status: 415 }] as const;

function ofBody(bytes: Buffer): Sent {
  // UTF-8 has the bytes of JSON's own characters nowhere else.
  const excess = bytes.length > 1_000 ? excessOfJson(bytes.toString("latin1")) : undefined;
  if (excess) throw new RequestError(`the request ${excess}`, "BAD_USER_INPUT");
  const text = bytes.toString();
  // A replacement character stands for invalid UTF-8, or was sent (RFC 8259, section 8.1).
  if (text.includes("\ufffd") && !isUtf8(bytes)) throw new RequestError("the body must be UTF-8");
  const sent = jsonOf(text, "the body must be JSON");
  if (Array.isArray(sent)) throw new RequestError("Batching is not supported.");
  if (!isJsonObject(sent)) throw new RequestError("the body must be a JSON object");
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
    throw new RequestError(otherwise);
  }
}

function checked({ query, variables, operationName, extensions, ...others }: Sent): Params {
  for (const name in others) {
    if ((others[name] ?? undefined) === undefined) continue;
    throw new RequestError(`Unexpected parameter${namedOf(name)} in the request body.`);
  }
  if (query === null || query === undefined) {
    throw new RequestError("Must provide query string.", "BAD_REQUEST", { ofGraphql: true });
  }
  if (typeof query !== "string") throw new RequestError('"query" must be a string');
  for (const [name, value] of Object.entries({ variables, extensions })) {
    if (!isJsonObject(value ?? {})) throw new RequestError(`"${name}" must be an object`);
  }
  return { query, variables, operationName } as Params;
}

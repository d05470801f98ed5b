import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import type { CustomerIdentity } from "../gen/payments/v1/customer_pb.ts";
import { encode } from "../wire/wire.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Question } from "./parse-response.ts";

/** One call of the REST interface, ready to be sent. */
export interface RestCall<Result>
  extends Pick<Question<Result>, "read" | "isResult" | "successCodes" | "about"> {
  readonly endpoint: Endpoint;
  /** Path with its parameters filled in, and query; begins with `/api`. */
  readonly target: string;
  readonly customer?: CustomerIdentity | undefined;
  readonly body?: string;
  /** The request message and its schema: its secrets are redacted in error texts. */
  readonly schema: DescMessage;
  readonly request: Message;
}

/** Adds query parameters to a path, in the given order; undefined values are left out. */
export function withQuery(
  path: string,
  query: Readonly<Record<string, string | undefined>>,
): string {
  let target = path;
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    target += `${target === path ? "?" : "&"}${name}=${escaped(name, value)}`;
  }
  return target;
}

/** Percent-encodes a value. @throws GatewayError INVALID_ARGUMENT for half a surrogate pair */
export function escaped(name: string, value: string): string {
  if (!value.isWellFormed()) throw unsendable(name, "has half a surrogate pair");
  return encodeURIComponent(value);
}

/** Encodes a request as JSON. @throws GatewayError INVALID_ARGUMENT for what JSON cannot carry. */
export function bodyOf<Desc extends DescMessage>(
  schema: Desc,
  request: MessageShape<Desc>,
): string {
  try {
    return encode(schema, request);
  } catch (error) {
    if (error instanceof RangeError) throw unsendable("", error.message);
    throw error;
  }
}

function unsendable(path: string, message: string): GatewayError {
  return new GatewayError("INVALID_ARGUMENT", path ? `${path}: ${message}` : message, {
    reason: "INVALID_FIELDS",
    fields: [{ path, message }],
  });
}

import {
  type DescMessage,
  type DescMethod,
  getOption,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import type { CustomerIdentity } from "../gen/payments/v1/customer_pb.ts";
import { endpoint } from "../gen/payments/v1/options_pb.ts";
import type { Kind } from "../model/kinds.ts";
import { moneyKindOf } from "../model/money-methods.ts";
import { encode } from "../wire/wire.ts";
import type { Question } from "./parse-response.ts";

/** One endpoint of the spec. */
export interface Endpoint {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** As in the spec: begins with `/api`, with `{...}` for path parameters. */
  readonly path: string;
  /** What the endpoint moves money for; absent if it moves none. */
  readonly moneyKind?: Kind | undefined;
}

/** Reads a method's endpoint from its option in the proto. @throws Error if it has none */
export function endpointOf(method: DescMethod): Endpoint {
  const [verb, path] = getOption(method, endpoint).split(" ");
  if (!path) throw new Error(`${method.parent.typeName}.${method.name} has no endpoint`);
  return { method: verb as Endpoint["method"], path, moneyKind: moneyKindOf(method) };
}

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

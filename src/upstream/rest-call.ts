import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import type { CustomerIdentity } from "../gen/payments/v1/customer_pb.ts";
import { encode } from "../wire/wire.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Question } from "./parse-response.ts";

/** One call of the REST interface, ready to be sent. */
export interface RestCall<Result>
  extends Pick<Question<Result>, "read" | "money" | "isResult" | "successCodes" | "about"> {
  readonly endpoint: Endpoint;
  /** Path with its values, and query; from `/api` on. */
  readonly target: string;
  readonly customer?: CustomerIdentity | undefined;
  readonly body?: string;
  /** What the call was made of, to find its secrets in an error's text. */
  readonly schema: DescMessage;
  readonly request: Message;
}

/** A target from a path and its query, in the order given; undefined values are left out. */
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

/** A value as it stands in a path or a query. */
export function escaped(name: string, value: string): string {
  if (!value.isWellFormed()) throw unsendable(name, "has half a surrogate pair");
  return encodeURIComponent(value);
}

/** A request as a JSON body. @throws GatewayError INVALID_ARGUMENT for what JSON cannot carry. */
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

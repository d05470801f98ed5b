import {
  type DescMessage,
  type DescMethod,
  getOption,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { CustomerIdentity } from "../gen/payments/v1/customer_pb.ts";
import { endpoint } from "../gen/payments/v1/options_pb.ts";
import type { Kind } from "../model/kinds.ts";
import { moneyKindOf } from "../model/money-methods.ts";
import { type DecodeOptions, encode } from "../wire/wire.ts";

/** One endpoint of the spec. */
export interface Endpoint {
  /** Method and path. */
  readonly name: string;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** As in the spec: begins with `/api`, with `{...}` for path parameters. */
  readonly path: string;
  /** What the endpoint moves money for; absent if it moves none. */
  readonly moneyKind?: Kind | undefined;
}

/** How the answer of a call is read. */
export interface AnswerReader<Result> {
  /** Reads the body of a 2xx answer. @throws when it is not understood. */
  readonly read: (text: string, options: DecodeOptions) => Result;
  /**
   * Whether a body that came with a 4xx status is a result all the same: the spec ties no status to
   * the data of a payment. Default: never.
   */
  readonly isResult?: ((result: Result) => boolean) | undefined;
  /** The external_id that the answer must be about. */
  readonly externalId?: string | undefined;
}

/** One call of the REST interface, ready to be sent. */
export interface RestCall<Result> extends AnswerReader<Result> {
  readonly endpoint: Endpoint;
  /** Path with its parameters filled in, and query; begins with `/api`. */
  readonly target: string;
  readonly customer?: CustomerIdentity | undefined;
  readonly body?: string | undefined;
  /** The request message and its schema: its secrets are redacted in error texts. */
  readonly schema: DescMessage;
  readonly request: Message;
}

/** What differs between calls; the rest of a RestCall follows from the method. */
type Parts<Result> = AnswerReader<Result> &
  Pick<RestCall<Result>, "customer"> & {
    readonly hasBody?: boolean;
    /** Query parameters, in their order; undefined values are left out. */
    readonly query?: Readonly<Record<string, string | undefined>>;
  };

/**
 * Returns a function that makes the calls of a method's endpoint. Its argument goes to `partsOf`.
 * @throws Error for a method without an endpoint
 */
export function restCall<Input extends DescMessage, Result>(
  method: DescMethod & { readonly input: Input },
  partsOf: (request: MessageShape<Input>) => Parts<Result>,
): (request: MessageShape<Input>) => RestCall<Result> {
  const schema = method.input;
  const endpoint = endpointOf(method);
  return (request) => {
    const parts = partsOf(request);
    let target = withParameters(endpoint.path, schema, request);
    if (parts.query) target = withQuery(target, parts.query);
    const body = parts.hasBody ? encode(schema, request) : undefined;
    // Not a copy of the parts, which would take as long as all the rest.
    const { read, isResult, externalId, customer } = parts;
    return {
      ...{ endpoint, target, customer, body, schema, request },
      ...{ read, isResult, externalId },
    };
  };
}

/** Reads a method's endpoint from its option in the proto. @throws Error if it has none */
function endpointOf(method: DescMethod): Endpoint {
  const name = getOption(method, endpoint);
  const [verb, path] = name.split(" ");
  if (!path) throw new Error(`${method.parent.typeName}.${method.name} has no endpoint`);
  return { name, method: verb as Endpoint["method"], path, moneyKind: moneyKindOf(method) };
}

/** Fills in the path's parameters: the request's fields of the same names. */
function withParameters(path: string, schema: DescMessage, request: object): string {
  return path.replace(/\{(\w+)\}/, (_, name: string) => {
    const field = schema.fields.find((one) => one.name === name);
    const value = (request as Record<string, unknown>)[field?.localName ?? name];
    return encodeURIComponent(String(value));
  });
}

function withQuery(path: string, query: NonNullable<Parts<unknown>["query"]>): string {
  let target = path;
  let separator = "?";
  for (const name in query) {
    const value = query[name];
    if (value === undefined) continue;
    target += `${separator}${name}=${encodeURIComponent(value)}`;
    separator = "&";
  }
  return target;
}

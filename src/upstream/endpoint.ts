import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { endpoint } from "../gen/payments/v1/options_pb.ts";
import type { Kind } from "../model/kinds.ts";
import { moneyKindOf } from "../model/money-methods.ts";

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

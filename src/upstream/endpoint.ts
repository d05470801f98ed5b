import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { endpoint } from "../gen/payments/v1/options_pb.ts";

/** One endpoint of the spec. */
export interface Endpoint {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** As the spec has it, from `/api` on, with `{...}` for what is in the path. */
  readonly path: string;
}

/** The endpoint that stands beside a method in the proto. */
export function endpointOf(method: DescMethod): Endpoint {
  const [verb, path] = getOption(method, endpoint).split(" ");
  if (!path) throw new Error(`${method.parent.typeName}.${method.name} has no endpoint`);
  return { method: verb as Endpoint["method"], path };
}

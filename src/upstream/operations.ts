import { type Operation, OperationSchema } from "../gen/payments/v1/operation_pb.ts";
import {
  GetOperationRequestSchema,
  OperationService,
} from "../gen/payments/v1/operation_service_pb.ts";
import { type DecodeOptions, decode } from "../wire/wire.ts";
import type { Client } from "./client.ts";
import { endpointOf, withQuery } from "./rest-call.ts";
import type { Upstream } from "./upstream.ts";

/** Spec, Endpoints, Alternative payments. */
export function operationCalls({ read }: Client): Pick<Upstream, "getOperation"> {
  return {
    getOperation(request, options) {
      const query = { external_id: request.externalId, operation_id: request.operationId };
      const call = {
        endpoint: info,
        target: withQuery(info.path, query),
        schema: GetOperationRequestSchema,
        request,
        read: readOperation,
        about: { externalId: request.externalId, namedIn },
      };
      return read(call, options);
    },
  };
}

const info = endpointOf(OperationService.method.getOperation);

const namedIn = ({ externalId }: Operation) => externalId;

const readOperation = (text: string, options: DecodeOptions) =>
  decode(OperationSchema, text, options);

import { GetOperationRequestSchema } from "../gen/payments/v1/operation_service_pb.ts";
import type { Context } from "./context.ts";
import type { Core } from "./core.ts";
import { sendOptions } from "./money-calls.ts";
import { validate } from "./validate.ts";

/** Operations of alternative payments. */
export function operationCases(context: Context): Pick<Core, "getOperation"> {
  return {
    getOperation(request, call) {
      validate(GetOperationRequestSchema, request);
      return context.account(call.caller.account).upstream.getOperation(request, sendOptions(call));
    },
  };
}

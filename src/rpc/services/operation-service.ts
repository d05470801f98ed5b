import type { ServiceImpl } from "@connectrpc/connect";
import type { Core } from "../../core/core.ts";
import type { OperationService } from "../../gen/payments/v1/operation_service_pb.ts";
import { callOf } from "../gated-call.ts";

/** Implements the contract's OperationService: operations of alternative payments. */
export function operationService(core: Core): ServiceImpl<typeof OperationService> {
  return {
    async getOperation(request, context) {
      return { operation: await core.getOperation(request, callOf(context)) };
    },
  };
}

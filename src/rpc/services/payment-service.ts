import type { ServiceImpl } from "@connectrpc/connect";
import type { Call, Core } from "../../core/core.ts";
import type { PaymentService } from "../../gen/payments/v1/payment_service_pb.ts";
import { callOf } from "../gated-call.ts";
import { eventStream } from "./event-stream.ts";

/** Implements the contract's PaymentService: each method is one use case of the core. */
export function paymentService(core: Core): ServiceImpl<typeof PaymentService> {
  return {
    async createPayment(request, context) {
      const call = callOf(context);
      const payment = await core.createPayment(request, call);
      return { payment, ...(await core.paymentStateAfter(payment, request.externalId, call)) };
    },
    async createRecurrentPayment(request, context) {
      const call = callOf(context);
      const payment = await core.createRecurrentPayment(request, call);
      return { payment, ...(await core.paymentStateAfter(payment, request.externalId, call)) };
    },
    async confirmPayment(request, context) {
      const call = callOf(context);
      const payment = await core.confirmPayment(request, call);
      return { payment, ...(await core.paymentStateAfter(payment, request.externalId, call)) };
    },
    async resendCallback(request, context) {
      await core.resendCallback(request, callOf(context));
      return {};
    },
    getPayment(request, context) {
      return core.getPayment(request, callOf(context));
    },
    watchPayment(request, context) {
      const open = (call: Call) => core.watchPayment(request, call);
      return eventStream(open, context, request);
    },
  };
}

import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Call, Core } from "../../core/core.ts";
import { EventService } from "../../gen/payments/v1/event_service_pb.ts";
import { OperationService } from "../../gen/payments/v1/operation_service_pb.ts";
import { PaymentService } from "../../gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../gen/payments/v1/payout_service_pb.ts";
import { SubscriptionService } from "../../gen/payments/v1/subscription_service_pb.ts";
import { WalletService } from "../../gen/payments/v1/wallet_service_pb.ts";
import { callOf } from "../gated-call.ts";
import { eventStream } from "./event-stream.ts";

/** The services of the contract, all of which require an identified caller. */
export const services = [
  PaymentService,
  PayoutService,
  WalletService,
  SubscriptionService,
  OperationService,
  EventService,
] as const;

/** Each service with its implementation: a method is one use case of the core. */
export function implementations(core: Core) {
  return [
    [PaymentService, paymentService(core)],
    [PayoutService, payoutService(core)],
    [WalletService, walletService(core)],
    [SubscriptionService, subscriptionService(core)],
    [OperationService, operationService(core)],
    [EventService, eventService(core)],
  ] satisfies readonly (readonly [DescService, ServiceImpl<DescService>])[];
}

function paymentService(core: Core): ServiceImpl<typeof PaymentService> {
  return {
    createPayment: (request, context) => core.createPayment(request, callOf(context)),
    createRecurrentPayment: (request, context) =>
      core.createRecurrentPayment(request, callOf(context)),
    confirmPayment: (request, context) => core.confirmPayment(request, callOf(context)),
    async resendCallback(request, context) {
      await core.resendCallback(request, callOf(context));
      return {};
    },
    getPayment(request, context) {
      return core.getPayment(request, callOf(context));
    },
    listPayments: (request, context) => core.listPayments(request, callOf(context)),
    watchPayment(request, context) {
      const open = (call: Call) => core.watchPayment(request, call);
      return eventStream(open, context, request);
    },
  };
}

function payoutService(core: Core): ServiceImpl<typeof PayoutService> {
  return {
    requestPayout: (request, context) => core.requestPayout(request, callOf(context)),
    getPayout: (request, context) => core.getPayout(request, callOf(context)),
    listPayouts: (request, context) => core.listPayouts(request, callOf(context)),
    watchPayout(request, context) {
      const open = (call: Call) => core.watchPayout(request, call);
      return eventStream(open, context, request);
    },
  };
}

function walletService(core: Core): ServiceImpl<typeof WalletService> {
  return {
    async findWalletItems(request, context) {
      return { items: await core.findWalletItems(request, callOf(context)) };
    },
    async getConfirmationStatus(request, context) {
      return { item: await core.getConfirmationStatus(request, callOf(context)) };
    },
    async deleteWalletItem(request, context) {
      const {
        $typeName: _,
        $unknown: __,
        ...deleted
      } = await core.deleteWalletItem(request, callOf(context));
      return deleted;
    },
  };
}

function subscriptionService(core: Core): ServiceImpl<typeof SubscriptionService> {
  return {
    updateSubscription: (request, context) => core.updateSubscription(request, callOf(context)),
    deactivateSubscription: (request, context) =>
      core.deactivateSubscription(request, callOf(context)),
  };
}

function operationService(core: Core): ServiceImpl<typeof OperationService> {
  return {
    async getOperation(request, context) {
      return { operation: await core.getOperation(request, callOf(context)) };
    },
  };
}

function eventService(core: Core): ServiceImpl<typeof EventService> {
  return {
    streamEvents(request, context) {
      const open = (call: Call) => core.streamEvents(request, call);
      return eventStream(open, context, request);
    },
    listEvents: (request, context) => core.listEvents(request, callOf(context)),
    createWatchToken: (request, context) => core.createWatchToken(request, callOf(context)),
  };
}

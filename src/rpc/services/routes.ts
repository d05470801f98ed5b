import type { DescService, Message } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Core, History, Listing } from "../../core/core.ts";
import { EventService } from "../../gen/payments/v1/event_service_pb.ts";
import { OperationService } from "../../gen/payments/v1/operation_service_pb.ts";
import { PaymentService } from "../../gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../gen/payments/v1/payout_service_pb.ts";
import { SubscriptionService } from "../../gen/payments/v1/subscription_service_pb.ts";
import { WalletService } from "../../gen/payments/v1/wallet_service_pb.ts";
import type { Implemented } from "../methods.ts";
import type { ServiceCall } from "../served-call.ts";
import { eventStream } from "./event-stream.ts";

/** The functions that implement a service, by its methods. */
export type Implementation<Service extends DescService, Context = ServiceCall> = {
  [Name in keyof ServiceImpl<Service>]: ServiceImpl<Service>[Name] extends (
    request: infer Request,
    ...context: never
  ) => infer Answer
    ? (request: Request, call: Context) => Answer
    : never;
};

function paymentService(core: Core): Implementation<typeof PaymentService> {
  return {
    createPayment: (request, call) => core.createPayment(request, call),
    createRecurrentPayment: (request, call) => core.createRecurrentPayment(request, call),
    confirmPayment: (request, call) => core.confirmPayment(request, call),
    async resendCallback(request, call) {
      await core.resendCallback(request, call);
      return {};
    },
    getPayment(request, call) {
      return core.getPayment(request, call);
    },
    async listPayments(request, call) {
      const page = await core.listPayments(request, call);
      return { payments: rowsOf(page), ...nextOf(page) };
    },
    watchPayment(request, call) {
      return eventStream((call) => core.watchPayment(request, call), call, request);
    },
  };
}

function payoutService(core: Core): Implementation<typeof PayoutService> {
  return {
    requestPayout: (request, call) => core.requestPayout(request, call),
    getPayout: (request, call) => core.getPayout(request, call),
    async listPayouts(request, call) {
      const page = await core.listPayouts(request, call);
      return { payouts: rowsOf(page), ...nextOf(page) };
    },
    watchPayout(request, call) {
      return eventStream((call) => core.watchPayout(request, call), call, request);
    },
  };
}

function walletService(core: Core): Implementation<typeof WalletService> {
  return {
    async findWalletItems(request, call) {
      return { items: await core.findWalletItems(request, call) };
    },
    async getConfirmationStatus(request, call) {
      return { item: await core.getConfirmationStatus(request, call) };
    },
    async deleteWalletItem(request, call) {
      const { $typeName: _, $unknown: __, ...deleted } = await core.deleteWalletItem(request, call);
      return deleted;
    },
  };
}

function subscriptionService(core: Core): Implementation<typeof SubscriptionService> {
  return {
    updateSubscription: (request, call) => core.updateSubscription(request, call),
    deactivateSubscription: (request, call) => core.deactivateSubscription(request, call),
  };
}

function operationService(core: Core): Implementation<typeof OperationService> {
  return {
    async getOperation(request, call) {
      return { operation: await core.getOperation(request, call) };
    },
  };
}

function eventService(core: Core): Implementation<typeof EventService> {
  return {
    streamEvents(request, call) {
      return eventStream((call) => core.streamEvents(request, call), call, request);
    },
    async listEvents(request, call) {
      const page = await core.listEvents(request, call);
      return { events: page.edges.map(({ node }) => node), ...nextOf(page) };
    },
    createWatchToken: (request, call) => core.createWatchToken(request, call),
  };
}

/** What a list tells of each, without what the contract has no field for. */
function rowsOf<Of extends Message>({ edges }: Listing<Of>) {
  return edges.map(({ externalId, firstSeenAt, updatedAt, node }) => {
    const { $typeName: _, $unknown, ...told } = node;
    return { ...told, externalId, firstSeenAt, updatedAt };
  });
}

function nextOf({ endCursor }: History | Listing<unknown>) {
  return endCursor === undefined ? {} : { nextPageToken: endCursor };
}

/** Each service of the contract with what implements it: a method is one use case of the core. */
const implementors = [
  [PaymentService, paymentService],
  [PayoutService, payoutService],
  [WalletService, walletService],
  [SubscriptionService, subscriptionService],
  [OperationService, operationService],
  [EventService, eventService],
] as const;

/** The services of the contract, all of which require an identified caller. */
export const services: readonly DescService[] = implementors.map(([service]) => service);

export function implementations(core: Core): readonly Implemented[] {
  return implementors.map(([service, implement]) => [service, implement(core)]);
}

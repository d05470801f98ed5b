import type { DescService, Message } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Core, History, Listing } from "../../core/core.ts";
import { EventService } from "../../gen/payments/v1/event_service_pb.ts";
import { OperationService } from "../../gen/payments/v1/operation_service_pb.ts";
import { PaymentService } from "../../gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../gen/payments/v1/payout_service_pb.ts";
import { SubscriptionService } from "../../gen/payments/v1/subscription_service_pb.ts";
import { WalletService } from "../../gen/payments/v1/wallet_service_pb.ts";
import type { ServiceCall } from "../methods.ts";
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

/** The services of the contract, all of which require an identified caller. */
export const services = [
  PaymentService,
  PayoutService,
  WalletService,
  SubscriptionService,
  OperationService,
  EventService,
] as const satisfies readonly DescService[];

type Services = Implementation<typeof PaymentService> &
  Implementation<typeof PayoutService> &
  Implementation<typeof WalletService> &
  Implementation<typeof SubscriptionService> &
  Implementation<typeof OperationService> &
  Implementation<typeof EventService>;

/**
 * What implements the services: a method is the use case of the core that has its name. Those whose
 * answer has another form stand here.
 */
export function implementation(core: Core): Services {
  return {
    ...core,
    async listPayments(request, call) {
      const page = await core.listPayments(request, call);
      return { payments: rowsOf(page), ...nextOf(page) };
    },
    watchPayment(request, call) {
      return eventStream((call) => core.watchPayment(request, call), call, request);
    },
    async listPayouts(request, call) {
      const page = await core.listPayouts(request, call);
      return { payouts: rowsOf(page), ...nextOf(page) };
    },
    watchPayout(request, call) {
      return eventStream((call) => core.watchPayout(request, call), call, request);
    },
    streamEvents(request, call) {
      return eventStream((call) => core.streamEvents(request, call), call, request);
    },
    async listEvents(request, call) {
      const page = await core.listEvents(request, call);
      return { events: page.edges.map(({ node }) => node), ...nextOf(page) };
    },
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
    async getOperation(request, call) {
      return { operation: await core.getOperation(request, call) };
    },
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

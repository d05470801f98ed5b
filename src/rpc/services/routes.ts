import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Core } from "../../core/core.ts";
import { EventService } from "../../gen/payments/v1/event_service_pb.ts";
import { OperationService } from "../../gen/payments/v1/operation_service_pb.ts";
import { PaymentService } from "../../gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../gen/payments/v1/payout_service_pb.ts";
import { SubscriptionService } from "../../gen/payments/v1/subscription_service_pb.ts";
import { WalletService } from "../../gen/payments/v1/wallet_service_pb.ts";
import { eventService } from "./event-service.ts";
import { operationService } from "./operation-service.ts";
import { paymentService } from "./payment-service.ts";
import { payoutService } from "./payout-service.ts";
import { subscriptionService } from "./subscription-service.ts";
import { walletService } from "./wallet-service.ts";

/** The services of the contract, all of which require an identified caller. */
export const services = [
  PaymentService,
  PayoutService,
  WalletService,
  SubscriptionService,
  OperationService,
  EventService,
] as const;

/** Each service with its implementation. */
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

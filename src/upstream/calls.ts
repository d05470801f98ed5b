import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { OperationSchema } from "../gen/payments/v1/operation_pb.ts";
import { OperationService } from "../gen/payments/v1/operation_service_pb.ts";
import { type Payment, PaymentSchema, PaymentStatus } from "../gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../gen/payments/v1/payment_service_pb.ts";
import type { Payout } from "../gen/payments/v1/payout_pb.ts";
import { PayoutService } from "../gen/payments/v1/payout_service_pb.ts";
import {
  type DeactivateSubscriptionRequest,
  DeactivateSubscriptionResponseSchema,
  SubscriptionService,
  type UpdateSubscriptionRequest,
  UpdateSubscriptionResponseSchema,
} from "../gen/payments/v1/subscription_service_pb.ts";
import { DeletedWalletItemSchema, WalletItemSchema } from "../gen/payments/v1/wallet_pb.ts";
import {
  type FindWalletItemsRequest,
  type GetConfirmationStatusRequest,
  WalletService,
} from "../gen/payments/v1/wallet_service_pb.ts";
import { unrecognizedIn } from "../model/unrecognized.ts";
import { decodePayout } from "../wire/payout.ts";
import { type DecodeOptions, decode, decodeList } from "../wire/wire.ts";
import { restCall } from "./rest-call.ts";

const reader =
  <Desc extends DescMessage>(schema: Desc) =>
  (text: string, options: DecodeOptions): MessageShape<Desc> =>
    decode(schema, text, options);

const readPayment = reader(PaymentSchema);

const isPayment = (result: Payment) =>
  result.details !== undefined &&
  (result.details.status !== PaymentStatus.UNSPECIFIED ||
    unrecognizedIn(result, "details.status") !== undefined);

const isPayout = ({ transactionId, status }: Payout) => Boolean(transactionId && status);

/** A call that moves money for a payment. */
function payment({ externalId }: { readonly externalId: string }) {
  return { hasBody: true, externalId, read: readPayment, isResult: isPayment };
}

/** Both look-ups in a wallet name the customer and one of the customer's items. */
const walletItem = (request: FindWalletItemsRequest | GetConfirmationStatusRequest) => ({
  customer: request.customer,
  query: { external_id: request.customer?.externalId, option_id: request.optionId },
});

/**
 * A change of a subscription. The answer is a message for people; an empty body means success
 * without a message.
 */
function subscription<Desc extends DescMessage>(
  { customer }: UpdateSubscriptionRequest | DeactivateSubscriptionRequest,
  schema: Desc,
) {
  return {
    customer,
    query: { external_id: customer?.externalId },
    read: (text: string, options: DecodeOptions): MessageShape<Desc> =>
      text === "" ? create(schema) : decode(schema, text, options),
  };
}

const payments = PaymentService.method;
const payouts = PayoutService.method;
const wallet = WalletService.method;
const subscriptions = SubscriptionService.method;

/**
 * The calls of the spec's Endpoints part, by the names of their methods: how each is made of a
 * request, and its answer read.
 */
export const calls = {
  createPayment: restCall(payments.createPayment, payment),
  createRecurrentPayment: restCall(payments.createRecurrentPayment, payment),
  confirmPayment: restCall(payments.confirmPayment, payment),
  // The spec does not show the shape of the answer: any 2xx means success, whatever its body.
  resendCallback: restCall(payments.resendCallback, () => ({ hasBody: true, read: () => {} })),

  requestPayout: restCall(payouts.requestPayout, ({ order }) => ({
    hasBody: true,
    externalId: order?.externalId ?? "",
    read: decodePayout,
    isResult: isPayout,
  })),
  getPayout: restCall(payouts.getPayout, ({ externalId }) => ({
    query: { external_id: externalId },
    externalId,
    read: decodePayout,
  })),

  findWalletItems: restCall(wallet.findWalletItems, (request) => ({
    ...walletItem(request),
    // The spec shows one item as the answer; an empty object means no items.
    read: (text: string, options: DecodeOptions) =>
      /^\s*\{\s*\}\s*$/.test(text) ? [] : decodeList(WalletItemSchema, text, options),
  })),
  getConfirmationStatus: restCall(wallet.getConfirmationStatus, (request) => ({
    ...walletItem(request),
    // The first one, if there is any: an object without a known member is none.
    read: (text: string, options: DecodeOptions) =>
      decodeList(WalletItemSchema, text, options).at(0),
  })),
  deleteWalletItem: restCall(wallet.deleteWalletItem, ({ customer }) => ({
    hasBody: true,
    customer,
    query: { external_id: customer?.externalId },
    read: reader(DeletedWalletItemSchema),
  })),

  updateSubscription: restCall(subscriptions.updateSubscription, (request) => ({
    ...subscription(request, UpdateSubscriptionResponseSchema),
    hasBody: true,
  })),
  deactivateSubscription: restCall(subscriptions.deactivateSubscription, (request) =>
    subscription(request, DeactivateSubscriptionResponseSchema),
  ),

  getOperation: restCall(OperationService.method.getOperation, (request) => ({
    query: { external_id: request.externalId, operation_id: request.operationId },
    externalId: request.externalId,
    read: reader(OperationSchema),
  })),
};

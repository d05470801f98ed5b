import type { PaymentAnswer } from "../../core/core.ts";
import { OperationSchema } from "../../gen/payments/v1/operation_pb.ts";
import { OperationService } from "../../gen/payments/v1/operation_service_pb.ts";
import {
  OperationSummarySchema,
  PaymentDetailsSchema,
  PaymentSchema,
  PaymentStatus,
} from "../../gen/payments/v1/payment_pb.ts";
import {
  GetPaymentResponseSchema,
  ResendCallbackRequestSchema,
} from "../../gen/payments/v1/payment_service_pb.ts";
import { declineMessage } from "../../upstream/user-message.ts";
import { externalIdOf, noted, orNull } from "../loaders.ts";
import { type CostExtensions, upstreamCallCost } from "../operation-limits.ts";
import { builder } from "./builder.ts";
import { firstArg, pageLength, pageOf } from "./connection.ts";
import { PaymentEvent } from "./event.ts";
import { knownResource } from "./known-resource.ts";
import { describe, messageType } from "./message-type.ts";
import { mutation } from "./mutation.ts";

const PaymentDetails = messageType(PaymentDetailsSchema);
const Payment = knownResource("payment", PaymentSchema, PaymentEvent, 1);
const OperationSummary = messageType(OperationSummarySchema);
const Operation = messageType(OperationSchema);

builder.objectFields(Payment, (t) => ({
  operations: t.field({
    description: describe(GetPaymentResponseSchema.field.operations),
    extensions: { listSize: 10 } satisfies CostExtensions,
    type: [OperationSummary],
    resolve: async (payment, _, { loaders }) => [...(await loaders.operationsOf(payment))],
  }),
  operationInfo: t.field({
    description:
      "The operation of an alternative payment behind this state, read from the payments service " +
      "by `externalId` and `details.operationId`; null when there is none. Needs the scope " +
      "`operations:read`.",
    extensions: { cost: upstreamCallCost } satisfies CostExtensions,
    type: Operation,
    resolve: (payment, _, { loaders }) => {
      const { operationId } = payment.details ?? {};
      return operationId
        ? orNull(loaders.of(payment).operation(externalIdOf(payment), operationId))
        : null;
    },
  }),
  events: t.field({
    description:
      "What became known of the payment: its newest events that are kept, oldest first. " +
      "`eventsConnection` has all of them.",
    deprecationReason: "Use `eventsConnection(newestFirst: true)`, which has all of them.",
    extensions: { listSize: pageLength } satisfies CostExtensions,
    type: [PaymentEvent],
    args: { first: firstArg(t.arg) },
    async resolve(payment, { first }, { loaders }) {
      const page = pageOf({ first, newestFirst: true });
      const { edges } = await loaders.of(payment).history("payment", externalIdOf(payment), page);
      return edges.map(({ node }) => node).reverse();
    },
  }),
}));

// Not of the payment itself: beside the `userMessage` of a mutation's errors, which is never null,
// one query could not select both.
builder.objectField(PaymentDetails, "userMessage", (t) =>
  t.string({
    description:
      "Text for the customer of a payment with the status FAILURE, in English or Ukrainian, as the " +
      "header `Accept-Language` asks; null with any other status. It may change at any time.",
    // The context is read for a failure alone: watchers share the results of other events.
    resolve({ status, statusCode }, _, context) {
      if (status !== PaymentStatus.FAILURE) return null;
      return declineMessage(statusCode, context.operation.request.acceptLanguage).message;
    },
  }),
);

/** The payment of a call that moved money. */
const answered = ({ payment, ...state }: PaymentAnswer, { externalId }: { externalId: string }) =>
  noted(payment, { name: externalId, state });

mutation("createPayment", Payment, answered);
mutation("createRecurrentPayment", Payment, answered);
mutation("confirmPayment", Payment, answered);

const CallbackResent = messageType(ResendCallbackRequestSchema, {
  name: "CallbackResent",
  description: "The payments service took the request; the callback follows.",
  omit: ["operation"],
});
mutation("resendCallback", CallbackResent, (_, request) => request);

builder.queryField("operation", (t) =>
  t.field({
    description: describe(OperationService.method.getOperation),
    type: Operation,
    args: {
      externalId: t.arg.id({ description: "The payment's externalId.", required: true }),
      operationId: t.arg.id({
        description: "The operation's id, from the details of the payment.",
        required: true,
      }),
    },
    resolve: (_, { externalId, operationId }, { loaders }) =>
      loaders.operation(externalId, operationId),
  }),
);

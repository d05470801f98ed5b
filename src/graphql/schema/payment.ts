import type { PaymentAnswer } from "../../core/core.ts";
import { OperationDetailsSchema, OperationSchema } from "../../gen/payments/v1/operation_pb.ts";
import {
  FeeSchema,
  OperationSummarySchema,
  PaymentCustomerSchema,
  PaymentDetailsSchema,
  PaymentSchema,
  PaymentStatus,
} from "../../gen/payments/v1/payment_pb.ts";
import {
  GetPaymentResponseSchema,
  ListPaymentsRequestSchema,
  PaymentService,
  ResendCallbackRequestSchema,
} from "../../gen/payments/v1/payment_service_pb.ts";
import { declineMessage } from "../../upstream/user-message.ts";
import { externalIdOf, noted, orNull } from "../loaders.ts";
import { type CostExtensions, upstreamCallCost } from "../operation-limits.ts";
import { builder } from "./builder.ts";
import { firstArg, pageLength, pageOf } from "./connection.ts";
import { PaymentEvent } from "./event.ts";
import { addKnownResource } from "./known-resource.ts";
import { describe, messageType } from "./message-type.ts";
import { mutation } from "./mutation.ts";

messageType(FeeSchema, { scalars: { amount: "Decimal" } });
messageType(PaymentCustomerSchema, { scalars: { email: "EmailAddress" } });
const PaymentDetails = messageType(PaymentDetailsSchema, { scalars: { amount: "Decimal" } });
const Payment = messageType(PaymentSchema, { omit: ["externalId"] });
const OperationSummary = messageType(OperationSummarySchema, { scalars: { amount: "Decimal" } });

addKnownResource("payment", Payment, {
  externalId: PaymentSchema.field.externalId,
  answer: GetPaymentResponseSchema,
  filter: ListPaymentsRequestSchema,
  event: PaymentEvent,
  watch:
    "The events of a payment, live. Without `after` the first one is the current state, if one is " +
    "known; with it the stream goes on behind that event, without a gap and without a repeat. A " +
    "stream that ends early ends with an error whose `extensions.resumeCursor` is the cursor to " +
    "go on from; CURSOR_EXPIRED says that `after` is older than what is kept.",
  one:
    "The last state of a payment that the gateway knows, without asking the payments service: of " +
    "the successful attempt if there is one, else of the latest. Null when none is known; with " +
    "`outcomeUnknown` and no state when nothing but a call without an answer is known.",
  cost: 1,
});

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
      const externalId = externalIdOf(payment);
      const { operationId } = payment.details ?? {};
      return externalId && operationId
        ? orNull(loaders.of(payment).operation(externalId, operationId))
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

async function paymentOf(
  answer: Promise<PaymentAnswer>,
  { externalId }: { readonly externalId: string },
) {
  const { payment, ...state } = await answer;
  return noted(payment, { name: externalId, state });
}

mutation(PaymentService.method.createPayment, {
  description:
    "Creates a payment. Any number of attempts may use the same externalId until one succeeds. A " +
    "decline is a `PaymentServiceError` or a `Payment` with the status FAILURE; the `action` of a " +
    "payment tells what the customer has to do next. `idempotencyKey` makes a repeat safe.",
  success: Payment,
  run: (core, request, call) => paymentOf(core.createPayment(request, call), request),
});

mutation(PaymentService.method.createRecurrentPayment, {
  description:
    "Charges the payer of an earlier payment again. `idempotencyKey` makes a repeat safe.",
  success: Payment,
  run: (core, request, call) => paymentOf(core.createRecurrentPayment(request, call), request),
});

mutation(PaymentService.method.confirmPayment, {
  description:
    "Transfers the funds of a payment that was made with `confirm: false`. " +
    "`idempotencyKey` makes a repeat safe.",
  success: Payment,
  run: (core, request, call) => paymentOf(core.confirmPayment(request, call), request),
});

mutation(PaymentService.method.resendCallback, {
  description:
    "Asks the payments service to send a payment's callback again. It comes to where it went before.",
  success: messageType(ResendCallbackRequestSchema, {
    name: "CallbackResent",
    description: "The payments service took the request; the callback follows.",
    omit: ["operation"],
  }),
  run: async (core, request, call) => {
    await core.resendCallback(request, call);
    return request;
  },
});

messageType(OperationDetailsSchema, { scalars: { amount: "Decimal" } });
const Operation = messageType(OperationSchema);

builder.queryField("operation", (t) =>
  t.field({
    description: "One operation of an alternative payment, read from the payments service.",
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

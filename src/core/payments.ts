import { clone, create } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import { currentEvent } from "../events/current.ts";
import { paymentEntry } from "../events/entry.ts";
import { EventKind, EventSource } from "../gen/payments/v1/event_pb.ts";
import {
  type PaymentMethodInput,
  type RecipientPaymentMethod,
  RecipientPaymentMethodType,
} from "../gen/payments/v1/payment_input_pb.ts";
import {
  type Payment,
  PaymentMethodType,
  PaymentOperation,
  PaymentSchema,
} from "../gen/payments/v1/payment_pb.ts";
import {
  ConfirmPaymentRequestSchema,
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
  CreateRecurrentPaymentRequestSchema,
  GetPaymentRequestSchema,
  GetPaymentResponseSchema,
  ResendCallbackRequestSchema,
  WatchPaymentRequestSchema,
} from "../gen/payments/v1/payment_service_pb.ts";
import { evidenceOf } from "../intents/evidence.ts";
import type { Context } from "./context.ts";
import type { Call, Core } from "./core.ts";
import { sendOptions } from "./money-calls.ts";
import { validate } from "./validate.ts";
import { watch } from "./watch.ts";

type PaymentCases = Pick<
  Core,
  | "createPayment"
  | "createRecurrentPayment"
  | "confirmPayment"
  | "resendCallback"
  | "getPayment"
  | "watchPayment"
  | "paymentEvents"
>;

/** Payments: create, confirm, look up, watch. */
export function paymentCases(context: Context): PaymentCases {
  const { log, moneyCalls } = context;

  const callbackUrl = (call: Call, given: string | undefined) =>
    given ?? context.callbackUrl(call.caller.account, "payments");

  const entryOf = (externalId: string, operation: PaymentOperation) => (payment: Payment) =>
    paymentEntry(payment, { source: EventSource.RESPONSE, externalId, operation });

  return {
    async createPayment(request, call) {
      validate(CreatePaymentRequestSchema, request);
      const { externalId } = request;
      const { account } = call.caller;
      const sent = complete(request, callbackUrl(call, request.callbackUrl));
      return moneyCalls.run({
        call,
        method: "CreatePayment",
        kind: EventKind.PAYMENT,
        answerSchema: PaymentSchema,
        externalId,
        schema: CreatePaymentRequestSchema,
        request,
        // A second attempt while the first has no answer could charge twice.
        exclusive: true,
        send: (options) => context.account(account).upstream.createPayment(sent, options),
        entry: entryOf(externalId, PaymentOperation.PAYMENT),
      });
    },

    async createRecurrentPayment(request, call) {
      validate(CreateRecurrentPaymentRequestSchema, request);
      const sent = clone(CreateRecurrentPaymentRequestSchema, request);
      sent.callbackUrl = callbackUrl(call, request.callbackUrl);
      return moneyCalls.run({
        call,
        method: "CreateRecurrentPayment",
        kind: EventKind.PAYMENT,
        answerSchema: PaymentSchema,
        externalId: request.externalId,
        schema: CreateRecurrentPaymentRequestSchema,
        request,
        send: (options) =>
          context.account(call.caller.account).upstream.createRecurrentPayment(sent, options),
        entry: entryOf(request.externalId, PaymentOperation.RECURRENT),
      });
    },

    async confirmPayment(request, call) {
      validate(ConfirmPaymentRequestSchema, request);
      const sent = clone(ConfirmPaymentRequestSchema, request);
      sent.callbackUrl = callbackUrl(call, request.callbackUrl);
      return moneyCalls.run({
        call,
        method: "ConfirmPayment",
        kind: EventKind.PAYMENT,
        answerSchema: PaymentSchema,
        externalId: request.externalId,
        schema: ConfirmPaymentRequestSchema,
        request,
        send: (options) =>
          context.account(call.caller.account).upstream.confirmPayment(sent, options),
        entry: entryOf(request.externalId, PaymentOperation.CONFIRM),
      });
    },

    async resendCallback(request, call) {
      validate(ResendCallbackRequestSchema, request);
      await context
        .account(call.caller.account)
        .upstream.resendCallback(request, sendOptions(call));
    },

    async getPayment(request, call) {
      validate(GetPaymentRequestSchema, request);
      const { externalId } = request;
      const { account } = call.caller;
      // Read before the events are: what is settled in between shows in them.
      const open = await context.intents.open(account, EventKind.PAYMENT, externalId);
      const snapshot = await log.snapshot(account, EventKind.PAYMENT, externalId);
      const outcomeUnknown = open.some(
        (intent) => intent.state !== "pending" && !evidenceOf(intent, snapshot),
      );
      const event = snapshot && currentEvent(snapshot);
      if (!event && !outcomeUnknown) throw unknownPayment(externalId);
      return create(GetPaymentResponseSchema, {
        ...(event?.resource.case === "payment" && { payment: event.resource.value }),
        cursor: snapshot?.cursor ?? "",
        outcomeUnknown,
        needsOperator: open.some((intent) => intent.needsOperator && !evidenceOf(intent, snapshot)),
      });
    },

    async *watchPayment(request, call) {
      validate(WatchPaymentRequestSchema, request);
      const { externalId, afterCursor, untilFinal } = request;
      yield* watch(
        { log, call, drain: context.drain },
        { kind: EventKind.PAYMENT, externalId, after: afterCursor, untilFinal },
      );
    },

    async paymentEvents(externalId, limit, call) {
      return log.history(call.caller.account, EventKind.PAYMENT, externalId, limit);
    },
  };
}

/** The request as it is sent: with a callback URL, and with the types that the objects tell. */
function complete(request: CreatePaymentRequest, callbackUrl: string): CreatePaymentRequest {
  const sent = clone(CreatePaymentRequestSchema, request);
  sent.callbackUrl = callbackUrl;
  if (sent.paymentMethod) sent.paymentMethod.type = methodType(sent.paymentMethod);
  const recipientMethod = sent.recipient?.paymentMethod;
  if (recipientMethod) recipientMethod.type = recipientMethodType(recipientMethod);
  return sent;
}

const methodTypes = {
  cc: PaymentMethodType.CC_NUMBER,
  ccToken: PaymentMethodType.CC_TOKEN,
  wallet: PaymentMethodType.WALLET,
  applePay: PaymentMethodType.APPLE_PAY,
  googlePay: PaymentMethodType.GOOGLE_PAY,
  decryptedApplePay: PaymentMethodType.APPLE_PAY,
  decryptedGooglePay: PaymentMethodType.GOOGLE_PAY,
} as const;

function methodType({ type, method }: PaymentMethodInput): PaymentMethodType {
  if (type !== PaymentMethodType.UNSPECIFIED || method.case === undefined) return type;
  return methodTypes[method.case];
}

const recipientMethodTypes = {
  iban: RecipientPaymentMethodType.IBAN,
  ccToken: RecipientPaymentMethodType.CC_TOKEN,
  wallet: RecipientPaymentMethodType.WALLET,
  ccNumber: RecipientPaymentMethodType.CC_NUMBER,
} as const;

function recipientMethodType({ type, method }: RecipientPaymentMethod): RecipientPaymentMethodType {
  if (type !== RecipientPaymentMethodType.UNSPECIFIED || method.case === undefined) return type;
  return recipientMethodTypes[method.case];
}

function unknownPayment(externalId: string): GatewayError {
  return new GatewayError(
    "NOT_FOUND",
    `nothing is known of a payment with external_id ${JSON.stringify(externalId)}`,
    { reason: "PAYMENT_UNKNOWN" },
  );
}

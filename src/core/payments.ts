import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { GatewayError } from "../errors.ts";
import type { UpstreamError } from "../gen/payments/v1/error_pb.ts";
import { EventKind, EventSource } from "../gen/payments/v1/event_pb.ts";
import { RecipientPaymentMethodType } from "../gen/payments/v1/payment_input_pb.ts";
import {
  type OperationSummarySchema,
  type Payment,
  PaymentMethodType,
  PaymentOperation,
  PaymentSchema,
  type PaymentState,
  PaymentStatus,
} from "../gen/payments/v1/payment_pb.ts";
import {
  type ConfirmPaymentRequest,
  type CreatePaymentRequest,
  type CreateRecurrentPaymentRequest,
  type GetPaymentResponse,
  GetPaymentResponseSchema,
  ResendCallbackResponseSchema,
} from "../gen/payments/v1/payment_service_pb.ts";
import { currentState } from "../ledger/current.ts";
import { numberOf, paymentEntry } from "../ledger/entry.ts";
import type { Intent, Known } from "../ledger/intents.ts";
import type { Entry, OperationState } from "../ledger/log.ts";
import { standingOf } from "../ledger/open-calls.ts";
import { isPayingOperation } from "../ledger/payment-state.ts";
import { type MoneyMethod, moneyMethods } from "../model/money-methods.ts";
import { unrecognizedValue } from "../model/unrecognized.ts";
import { msOf } from "../stores/cursor.ts";
import { saysDeclined } from "../upstream/error-codes.ts";
import type { SendOptions, Upstream } from "../upstream/upstream.ts";
import type { Context } from "./context.ts";
import type { Call, Core, PaymentAnswer } from "./core.ts";
import { listKnown } from "./list-known.ts";
import { moneyAnswer } from "./money-answer.ts";
import { sendOptions } from "./money-calls.ts";
import { watch } from "./watch.ts";

/** Payments: create, confirm, look up, watch; and the operations of alternative payments. */
export function paymentCases(context: Context) {
  /** Makes a call that moves money; its answer becomes an event. */
  async function pay<Request extends PaymentRequest>(
    method: Exclude<MoneyMethod, "RequestPayout">,
    request: Request,
    call: Call,
    /** Sends the request, whose callback URL is set. */
    send: (upstream: Upstream, sent: Request, options: SendOptions) => Promise<Payment>,
  ): Promise<PaymentAnswer> {
    const { externalId } = request;
    const held = "confirm" in request && request.confirm === false;
    const confirms = method === "ConfirmPayment";
    const callbackUrl = request.callbackUrl ?? context.callbackUrl(call.caller.account, "payments");
    // Assumed when the answer does not name one.
    const operation = numberOf(PaymentOperation, moneyMethods[method].operations[0]);
    // An answer about a refund, say, leaves open what became of the call; so does one to a confirmation
    // that is about the payment.
    const { UNSPECIFIED, CONFIRM } = PaymentOperation;
    const isAnother = ({ operation }: Payment) =>
      operation !== UNSPECIFIED &&
      (!isPayingOperation(operation) || confirms !== (operation === CONFIRM));
    const { answer, state, cursor } = await moneyAnswer(context, {
      ...{ call, method, externalId, request, answerSchema: PaymentSchema, hold: held },
      send: (options) => send(context.upstreamOf(call), { ...request, callbackUrl }, options),
      refusal: async (said, intent) =>
        confirms && saysDeclined(said)
          ? declinedConfirmation(context, call.caller.account, intent, said)
          : undefined,
      entry(payment, { id: call }) {
        if (isAnother(payment)) return undefined;
        const about = { source: EventSource.RESPONSE, externalId, operation, call };
        const entry = paymentEntry(payment, { ...about, ...(!confirms && { held }) });
        // Without its checkout page nobody could pay, and whoever leaves that page may begin anew.
        return entry ?? (payment.action?.value ? "goesOn" : undefined);
      },
    });
    return { payment: answer, state, cursor };
  }

  return {
    createPayment: (request, call) =>
      pay("CreatePayment", request, call, (upstream, sent, options) =>
        upstream.createPayment(withTypes(sent), options),
      ),

    createRecurrentPayment: (request, call) =>
      pay("CreateRecurrentPayment", request, call, (upstream, sent, options) =>
        upstream.createRecurrentPayment(sent, options),
      ),

    confirmPayment: (request, call) =>
      pay("ConfirmPayment", request, call, (upstream, sent, options) =>
        upstream.confirmPayment(sent, options),
      ),

    async resendCallback(request, call) {
      await context.upstreamOf(call).resendCallback(request, sendOptions(call));
      return create(ResendCallbackResponseSchema);
    },

    async getPayment(request, call) {
      const { externalId } = request;
      const { account } = call.caller;
      const answer = answerOf(await context.ledger.known(account, EventKind.PAYMENT, externalId));
      if (answer) return answer;
      const message = `nothing is known of the payment ${JSON.stringify(externalId)}`;
      throw new GatewayError("NOT_FOUND", message, { reason: "PAYMENT_UNKNOWN" });
    },

    listPayments(request, call) {
      const stateOf = (state: number) => state as PaymentState;
      return listKnown(context, request, call, { kind: EventKind.PAYMENT, stateOf, answerOf });
    },

    watchPayment: (request, call) => watch(context, call, EventKind.PAYMENT, request),

    async getOperation(request, call) {
      return context.upstreamOf(call).getOperation(request, sendOptions(call));
    },
  } satisfies Partial<Core>;
}

type PaymentRequest = CreatePaymentRequest | CreateRecurrentPaymentRequest | ConfirmPaymentRequest;

/**
 * The event of a confirmation that the service declined with an Error object. It is one of
 * the payment's operations, and the service sends callbacks for declined payments, but not for
 * declined confirmations (spec, Events). If the Error object names no payment, the event is about
 * the payment that succeeded. Never throws.
 */
async function declinedConfirmation(
  { ledger }: Context,
  account: string,
  { id: attempt, externalId }: Intent,
  said: UpstreamError,
): Promise<Entry | undefined> {
  const reading = said.paymentId ? undefined : ledger.known(account, EventKind.PAYMENT, externalId);
  // If the store is out of reach, the event could not be appended either.
  const known = await reading?.catch(() => undefined);
  const current = known && currentState(known);
  const succeeded = current?.status === "success" ? current.event.paymentId : undefined;
  const paymentId = said.paymentId || succeeded;
  if (!paymentId) return undefined;
  const payment = create(PaymentSchema, {
    externalId,
    isSuccess: false,
    operation: PaymentOperation.CONFIRM,
    details: {
      paymentId,
      status: PaymentStatus.FAILURE,
      ...(said.code && { statusCode: said.code }),
      ...(said.message && { statusDescription: said.message }),
    },
  });
  return paymentEntry(payment, { source: EventSource.RESPONSE, attempt });
}

/** The request, with missing payment method types set according to the details given. */
function withTypes(request: CreatePaymentRequest): CreatePaymentRequest {
  const { paymentMethod, recipient } = request;
  const sent = { ...request };
  if (paymentMethod) {
    sent.paymentMethod = { ...paymentMethod, type: typeOf(paymentMethod, methodTypes) };
  }
  if (recipient?.paymentMethod) {
    const type = typeOf(recipient.paymentMethod, recipientMethodTypes);
    sent.recipient = { ...recipient, paymentMethod: { ...recipient.paymentMethod, type } };
  }
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

const recipientMethodTypes = {
  iban: RecipientPaymentMethodType.IBAN,
  ccToken: RecipientPaymentMethodType.CC_TOKEN,
  wallet: RecipientPaymentMethodType.WALLET,
  ccNumber: RecipientPaymentMethodType.CC_NUMBER,
} as const;

/** The type that a payment method states, else that of its details. */
function typeOf<Type extends number, Case extends string>(
  { type, method }: { readonly type: Type; readonly method: { readonly case?: Case | undefined } },
  types: Readonly<Record<Case, Type>>,
): Type {
  return type !== 0 || method.case === undefined ? type : types[method.case];
}

/** What callers see of a payment; undefined if nothing is known of it and no call is out. */
function answerOf(known: Known): GetPaymentResponse | undefined {
  const standing = standingOf(EventKind.PAYMENT, known);
  if (!standing) return undefined;
  const current = currentState(known);
  const payment = current && paymentOf(current);
  return create(GetPaymentResponseSchema, {
    ...(payment && { payment }),
    cursor: known.cursor,
    ...standing,
    operations: known.operations.map(summaryOf),
    olderFailures: known.folded,
  });
}

/** The payment of a state, with what the service has since said of it in unknown words. */
function paymentOf({ event: { resource }, words = [] }: OperationState): Payment | undefined {
  if (resource.case !== "payment") return undefined;
  if (words.length === 0) return resource.value;
  const said = new Set(words.map(([field]) => field));
  const others = resource.value.unrecognized.filter(({ field }) => !said.has(field));
  const unrecognized = [...others, ...words.map((word) => unrecognizedValue(...word))];
  return { ...resource.value, unrecognized };
}

/** An operation as callers see it. */
function summaryOf(of: OperationState): MessageInitShape<typeof OperationSummarySchema> {
  const { subjectId: paymentId, operation, operationId, isAttempt, status, place, ...rest } = of;
  const { statusCode, amount, currency, words = [] } = rest;
  return {
    ...(paymentId && { paymentId }),
    operation: numberOf(PaymentOperation, operation),
    ...(operationId && !isAttempt && { operationId }),
    status: numberOf(PaymentStatus, status),
    ...(statusCode && { statusCode }),
    ...(amount && { amount }),
    ...(currency && { currency }),
    at: timestampFromMs(msOf(place)),
    unrecognized: words.map((word) => unrecognizedValue(...word)),
  };
}

import { EventKind } from "../gen/payments/v1/event_pb.ts";
import { type Payment, PaymentSchema, PaymentStatus } from "../gen/payments/v1/payment_pb.ts";
import {
  ConfirmPaymentRequestSchema,
  CreatePaymentRequestSchema,
  CreateRecurrentPaymentRequestSchema,
  PaymentService,
  ResendCallbackRequestSchema,
} from "../gen/payments/v1/payment_service_pb.ts";
import { unrecognizedIn } from "../model/unrecognized.ts";
import { type DecodeOptions, decode } from "../wire/wire.ts";
import type { Client } from "./client.ts";
import { type Endpoint, endpointOf } from "./endpoint.ts";
import type { Money } from "./outcome.ts";
import { bodyOf } from "./rest-call.ts";
import type { Upstream } from "./upstream.ts";

type PaymentCalls = Pick<
  Upstream,
  "createPayment" | "createRecurrentPayment" | "confirmPayment" | "resendCallback"
>;

/** Spec, Endpoints, Payments. */
export function paymentCalls({ send }: Client): PaymentCalls {
  return {
    async createPayment(request, options) {
      const schema = CreatePaymentRequestSchema;
      const call = { ...movesMoney(endpoints.new, request.externalId), schema, request };
      return send({ ...call, body: bodyOf(schema, request) }, options);
    },

    async createRecurrentPayment(request, options) {
      const schema = CreateRecurrentPaymentRequestSchema;
      const call = { ...movesMoney(endpoints.recurrent, request.externalId), schema, request };
      return send({ ...call, body: bodyOf(schema, request) }, options);
    },

    async confirmPayment(request, options) {
      const schema = ConfirmPaymentRequestSchema;
      const call = { ...movesMoney(endpoints.confirm, request.externalId), schema, request };
      return send({ ...call, body: bodyOf(schema, request) }, options);
    },

    async resendCallback(request, options) {
      const schema = ResendCallbackRequestSchema;
      const endpoint = endpoints.resend;
      const body = bodyOf(schema, request);
      // The spec does not show the shape of the answer: any 2xx means success, whatever its body.
      const read = () => {};
      await send({ endpoint, target: endpoint.path, schema, request, body, read }, options);
    },
  };
}

const methods = PaymentService.method;
const endpoints = {
  new: endpointOf(methods.createPayment),
  recurrent: endpointOf(methods.createRecurrentPayment),
  confirm: endpointOf(methods.confirmPayment),
  resend: endpointOf(methods.resendCallback),
};

function movesMoney(endpoint: Endpoint, externalId: string) {
  const money: Money = { kind: EventKind.PAYMENT, externalId };
  const about = { externalId, namedIn };
  return { endpoint, target: endpoint.path, money, read, isResult, about };
}

const namedIn = ({ externalId }: Payment) => externalId;

const read = (text: string, options: DecodeOptions) => decode(PaymentSchema, text, options);

const isResult = (payment: Payment) =>
  payment.details !== undefined &&
  (payment.details.status !== PaymentStatus.UNSPECIFIED ||
    unrecognizedIn(payment, "details.status") !== undefined);

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
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
import { bodyOf, type Endpoint, endpointOf } from "./rest-call.ts";
import type { SendOptions, Upstream } from "./upstream.ts";

type PaymentCalls = Pick<
  Upstream,
  "createPayment" | "createRecurrentPayment" | "confirmPayment" | "resendCallback"
>;

/** Spec, Endpoints, Payments. */
export function paymentCalls({ send }: Client): PaymentCalls {
  /** Sends a call that moves money. */
  async function pay<Schema extends DescMessage>(
    endpoint: Endpoint,
    schema: Schema,
    request: MessageShape<Schema> & { readonly externalId: string },
    options: SendOptions,
  ): Promise<Payment> {
    const about = { externalId: request.externalId, namedIn };
    const call = { endpoint, target: endpoint.path, schema, request, read, isResult, about };
    return send({ ...call, body: bodyOf(schema, request) }, options);
  }

  return {
    createPayment: (request, options) =>
      pay(endpoints.new, CreatePaymentRequestSchema, request, options),

    createRecurrentPayment: (request, options) =>
      pay(endpoints.recurrent, CreateRecurrentPaymentRequestSchema, request, options),

    confirmPayment: (request, options) =>
      pay(endpoints.confirm, ConfirmPaymentRequestSchema, request, options),

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

const namedIn = ({ externalId }: Payment) => externalId;

const read = (text: string, options: DecodeOptions) => decode(PaymentSchema, text, options);

const isResult = (payment: Payment) =>
  payment.details !== undefined &&
  (payment.details.status !== PaymentStatus.UNSPECIFIED ||
    unrecognizedIn(payment, "details.status") !== undefined);

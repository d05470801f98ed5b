import {
  create,
  type DescMessage,
  type DescMethod,
  getOption,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import { type CustomerIdentity, CustomerIdentitySchema } from "../gen/payments/v1/customer_pb.ts";
import { OperationSchema } from "../gen/payments/v1/operation_pb.ts";
import { OperationService } from "../gen/payments/v1/operation_service_pb.ts";
import { endpoint } from "../gen/payments/v1/options_pb.ts";
import { type Payment, PaymentSchema, PaymentStatus } from "../gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../gen/payments/v1/payment_service_pb.ts";
import type { Payout } from "../gen/payments/v1/payout_pb.ts";
import { PayoutService } from "../gen/payments/v1/payout_service_pb.ts";
import {
  DeactivateSubscriptionResponseSchema,
  SubscriptionService,
  UpdateSubscriptionResponseSchema,
} from "../gen/payments/v1/subscription_service_pb.ts";
import { DeletedWalletItemSchema, WalletItemSchema } from "../gen/payments/v1/wallet_pb.ts";
import { WalletService } from "../gen/payments/v1/wallet_service_pb.ts";
import type { Kind } from "../model/kinds.ts";
import { moneyKindOf } from "../model/money-methods.ts";
import { unrecognizedIn } from "../model/unrecognized.ts";
import { decodePayout } from "../wire/payout.ts";
import { type WireField, wireFields } from "../wire/plan.ts";
import { type DecodeOptions, decode, decodeList, encode } from "../wire/wire.ts";

/** How the answer of a call is read. */
export interface AnswerReader<Result> {
  /** Reads the body of a 2xx answer. @throws when it is not understood. */
  readonly read: (text: string, options: DecodeOptions) => Result;
  /**
   * Whether a body that came with a 4xx status is a result all the same: the spec ties no status to
   * the data of a payment. Default: never.
   */
  readonly isResult?: ((result: Result) => boolean) | undefined;
  /** The external_id that the answer must be about. */
  readonly externalId?: string | undefined;
}

/** One call of the REST interface, ready to be sent. */
export interface RestCall<Result> extends AnswerReader<Result> {
  /** Method and path template. */
  readonly endpoint: string;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** As in the spec: begins with `/api`, with `{...}` for path parameters. */
  readonly path: string;
  /** What the call moves money for; absent if it moves none. */
  readonly moneyKind: Kind | undefined;
  /** Path with its parameters filled in, and query. */
  readonly target: string;
  readonly customer: CustomerIdentity | undefined;
  readonly body: string | undefined;
  /** The request message and its schema: its secrets are redacted in error texts. */
  readonly schema: DescMessage;
  readonly request: Message;
}

/** What requests say of their call, each where it has such a field. */
interface About {
  readonly customer?: CustomerIdentity;
  readonly externalId?: string;
  readonly order?: { readonly externalId: string };
}

/**
 * Returns a function that makes the calls of a method's endpoint. The fields of the request that the
 * proto does not omit from the wire are the body, or the query of a GET; one that it omits may be a
 * parameter of the path. A customer's external_id is in the query, whatever the method.
 * @throws Error for a method without an endpoint
 */
function restCall<Input extends DescMessage, Result>(
  rpc: DescMethod & { readonly input: Input },
  read: AnswerReader<Result>["read"],
  isResult?: AnswerReader<Result>["isResult"],
): (request: MessageShape<Input>) => RestCall<Result> {
  const name = getOption(rpc, endpoint);
  const [verb, path] = name.split(" ");
  if (!path) throw new Error(`${rpc.parent.typeName}.${rpc.name} has no endpoint`);
  const method = verb as RestCall<Result>["method"];
  const moneyKind = moneyKindOf(rpc);
  const schema: DescMessage = rpc.input;
  const fields = wireFields(schema);
  const hasQuery = method === "GET";
  const hasBody = !hasQuery && fields.length > 0;
  const inPath = schema.fields.find((field) => path.includes(`{${field.name}}`));
  // The payer of a payment is a customer too, and is part of the body.
  const hasIdentity = schema.field.customer?.message === CustomerIdentitySchema;
  return (request) => {
    const { customer: given, externalId, order } = request as About;
    const values = request as unknown as Readonly<Record<string, unknown>>;
    const customer = hasIdentity ? given : undefined;
    let target = path;
    if (inPath) {
      const value = encodeURIComponent(String(values[inPath.localName]));
      target = path.replace(`{${inPath.name}}`, () => value);
    }
    if (customer || hasQuery) target += queryOf(customer, hasQuery ? fields : [], values);
    return {
      ...{ endpoint: name, method, path, moneyKind, target, customer, schema, request },
      ...{ read, isResult, externalId: externalId ?? order?.externalId },
      body: hasBody ? encode(schema, request) : undefined,
    };
  };
}

function queryOf(
  customer: CustomerIdentity | undefined,
  fields: readonly WireField[],
  values: Readonly<Record<string, unknown>>,
): string {
  const all = fields.map(({ member, field }) => [member, values[field.localName]] as const);
  const query = [["external_id", customer?.externalId] as const, ...all]
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return query.length === 0 ? "" : `?${query.join("&")}`;
}

const reader =
  <Desc extends DescMessage>(schema: Desc) =>
  (text: string, options: DecodeOptions): MessageShape<Desc> =>
    decode(schema, text, options);

/** Reads a message for people; an empty body means success without a message. */
const messageReader =
  <Desc extends DescMessage>(schema: Desc) =>
  (text: string, options: DecodeOptions): MessageShape<Desc> =>
    text === "" ? create(schema) : decode(schema, text, options);

const readPayment = reader(PaymentSchema);

const isPayment = (result: Payment) =>
  result.details !== undefined &&
  (result.details.status !== PaymentStatus.UNSPECIFIED ||
    unrecognizedIn(result, "details.status") !== undefined);

const isPayout = ({ transactionId, status }: Payout) => Boolean(transactionId && status);

const payments = PaymentService.method;
const payouts = PayoutService.method;
const wallet = WalletService.method;
const subscriptions = SubscriptionService.method;

/**
 * The calls of the spec's Endpoints part, by the names of their methods: how each is made of a
 * request, and its answer read.
 */
export const calls = {
  createPayment: restCall(payments.createPayment, readPayment, isPayment),
  createRecurrentPayment: restCall(payments.createRecurrentPayment, readPayment, isPayment),
  confirmPayment: restCall(payments.confirmPayment, readPayment, isPayment),
  // The spec does not show the shape of the answer: any 2xx means success, whatever its body.
  resendCallback: restCall(payments.resendCallback, () => {}),

  requestPayout: restCall(payouts.requestPayout, decodePayout, isPayout),
  getPayout: restCall(payouts.getPayout, decodePayout),

  // The spec shows one item as the answer; an empty object means no items.
  findWalletItems: restCall(wallet.findWalletItems, (text, options) =>
    /^\s*\{\s*\}\s*$/.test(text) ? [] : decodeList(WalletItemSchema, text, options),
  ),
  // The first one, if there is any: an object without a known member is none.
  getConfirmationStatus: restCall(wallet.getConfirmationStatus, (text, options) =>
    decodeList(WalletItemSchema, text, options).at(0),
  ),
  deleteWalletItem: restCall(wallet.deleteWalletItem, reader(DeletedWalletItemSchema)),

  updateSubscription: restCall(
    subscriptions.updateSubscription,
    messageReader(UpdateSubscriptionResponseSchema),
  ),
  deactivateSubscription: restCall(
    subscriptions.deactivateSubscription,
    messageReader(DeactivateSubscriptionResponseSchema),
  ),

  getOperation: restCall(OperationService.method.getOperation, reader(OperationSchema)),
};

import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { EventService } from "./gen/payments/v1/event_service_pb.ts";
import { OperationService } from "./gen/payments/v1/operation_service_pb.ts";
import { PaymentService } from "./gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "./gen/payments/v1/payout_service_pb.ts";
import { SubscriptionService } from "./gen/payments/v1/subscription_service_pb.ts";
import { WalletService } from "./gen/payments/v1/wallet_service_pb.ts";

/** One typed client for each service of `payments.v1`. */
export interface PaymentsGateway {
  readonly payments: Client<typeof PaymentService>;
  readonly payouts: Client<typeof PayoutService>;
  readonly wallet: Client<typeof WalletService>;
  readonly subscriptions: Client<typeof SubscriptionService>;
  readonly operations: Client<typeof OperationService>;
  readonly events: Client<typeof EventService>;
}

/**
 * The gateway over any Connect transport: gRPC or Connect by `@connectrpc/connect-node`, Connect or
 * gRPC-Web by `@connectrpc/connect-web`. Give the transport `credentials` as an interceptor.
 */
export function createPaymentsGateway(transport: Transport): PaymentsGateway {
  return {
    payments: createClient(PaymentService, transport),
    payouts: createClient(PayoutService, transport),
    wallet: createClient(WalletService, transport),
    subscriptions: createClient(SubscriptionService, transport),
    operations: createClient(OperationService, transport),
    events: createClient(EventService, transport),
  };
}

export interface Credentials {
  /** An API key or a JWT, or a function that gives a fresh one for each call. */
  readonly token: string | (() => string | Promise<string>);
  /** The merchant account. Default: `default`, or the only one that the caller may use. */
  readonly merchantAccount?: string;
}

/** An interceptor that sends the credentials with every call. */
export function credentials({ token, merchantAccount }: Credentials): Interceptor {
  return (next) => async (request) => {
    const bearer = typeof token === "string" ? token : await token();
    request.header.set("authorization", `Bearer ${bearer}`);
    if (merchantAccount) request.header.set("x-merchant-account", merchantAccount);
    return await next(request);
  };
}

/**
 * Headers that make a call that moves money safe to repeat: the same key with the same
 * request returns the first answer again, on every replica. Use one key for the order, not one for
 * each attempt: `payments.createPayment(order, { headers: idempotencyKey(order.id) })`. The
 * confirmation of that payment needs another key.
 *
 * @param key 1 to 255 characters of visible ASCII
 */
export function idempotencyKey(key: string): { "idempotency-key": string } {
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new RangeError("an idempotency key has 1 to 255 visible ASCII characters");
  }
  return { "idempotency-key": key };
}

import type { Caller } from "../auth/caller.ts";
import type { Push } from "../events/log.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import type {
  CreateWatchTokenRequest,
  CreateWatchTokenResponse,
  ListEventsRequest,
  ListEventsResponse,
  StreamEventsRequest,
} from "../gen/payments/v1/event_service_pb.ts";
import type { Operation } from "../gen/payments/v1/operation_pb.ts";
import type { GetOperationRequest } from "../gen/payments/v1/operation_service_pb.ts";
import type { Payment, PaymentState } from "../gen/payments/v1/payment_pb.ts";
import type {
  ConfirmPaymentRequest,
  CreatePaymentRequest,
  CreateRecurrentPaymentRequest,
  GetPaymentRequest,
  GetPaymentResponse,
  ResendCallbackRequest,
  WatchPaymentRequest,
} from "../gen/payments/v1/payment_service_pb.ts";
import type { Payout, PayoutState } from "../gen/payments/v1/payout_pb.ts";
import type {
  GetPayoutRequest,
  GetPayoutResponse,
  RequestPayoutRequest,
  WatchPayoutRequest,
} from "../gen/payments/v1/payout_service_pb.ts";
import type {
  DeactivateSubscriptionRequest,
  DeactivateSubscriptionResponse,
  UpdateSubscriptionRequest,
  UpdateSubscriptionResponse,
} from "../gen/payments/v1/subscription_service_pb.ts";
import type { DeletedWalletItem, WalletItem } from "../gen/payments/v1/wallet_pb.ts";
import type {
  DeleteWalletItemRequest,
  FindWalletItemsRequest,
  GetConfirmationStatusRequest,
} from "../gen/payments/v1/wallet_service_pb.ts";
import type { RateLimitStatus } from "../ratelimit/bucket.ts";

export type { Push } from "../events/log.ts";
export { payoutStateOf } from "../events/payment-state.ts";

/** What surrounds one call, whichever edge it came by. */
export interface Call {
  readonly caller: Caller;
  /** Aborts when the caller goes away or its deadline passes (reason: a TimeoutError). */
  readonly signal: AbortSignal;
  /** The caller's deadline, in milliseconds since the epoch. */
  readonly deadlineMs?: number;
  /** The deadline is the edge's own: the caller named none. */
  readonly deadlineIsOurs?: boolean;
  /** The `Idempotency-Key` header, as it came. */
  readonly idempotencyKey?: string;
  /**
   * The cursor of a stream comes from a client that goes on by itself: if the stream that it came
   * from was over with it, so is this one, at once.
   */
  readonly resumed?: boolean;
  /**
   * Hears when a stream has found its place: nothing that happens from then on is missing in it.
   * `from` is the cursor of that place, unless the caller named it or an event comes first that
   * tells more.
   */
  readonly onOpen?: (from: string | undefined) => void;
  /** The call has its answer, and waits by the event log alone: it needs no slot any more. */
  readonly onWait?: () => void;
  /** Hears what ends a stream early as soon as it is known, also while its reader does not read. */
  readonly onFail?: (error: Error) => void;
  /** Offered each live event once the edge has all before it and has asked for the next one. */
  readonly push?: Push | undefined;
  /** Ties the log records of one call together. */
  readonly requestId: string;
  /** How the caller is connected, for metrics: grpc, sse, websocket and the like. */
  readonly transport?: string;
}

/** Which events of a payment or payout. */
export interface HistoryPage {
  /** Most events, from 1 on. */
  readonly first: number;
  /** The place behind which the page begins; empty for the first page. */
  readonly after: string;
  readonly newestFirst: boolean;
}

export interface HistoryOf extends HistoryPage {
  readonly externalId: string;
}

/** A page of what became known of a payment or payout: the list of `listEvents`. */
export interface History {
  /** Events with the tokens of their places, as `listEvents` gives them for its pages. */
  readonly edges: readonly { readonly cursor: string; readonly node: Event }[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}

/**
 * The use cases: what both edges call, and all that they call. Each takes its request as the RPC
 * contract has it, checks it (INVALID_ARGUMENT names every wrong field), checks the caller's scope
 * (PERMISSION_DENIED), and throws GatewayError alone. A watch is one async iterable, which ends
 * when `call.signal` aborts.
 */
export interface Core {
  createPayment(request: CreatePaymentRequest, call: Call): Promise<Payment>;
  createRecurrentPayment(request: CreateRecurrentPaymentRequest, call: Call): Promise<Payment>;
  confirmPayment(request: ConfirmPaymentRequest, call: Call): Promise<Payment>;
  /**
   * The state of an external_id after what one of these calls answered, and the place behind it. An
   * answer that moved money is never withheld: while the log cannot be read it speaks for itself.
   */
  paymentStateAfter(
    answer: Payment,
    externalId: string,
    call: Call,
  ): Promise<{ readonly state: PaymentState; readonly cursor: string }>;
  resendCallback(request: ResendCallbackRequest, call: Call): Promise<void>;
  getPayment(request: GetPaymentRequest, call: Call): Promise<GetPaymentResponse>;
  watchPayment(request: WatchPaymentRequest, call: Call): AsyncIterable<Event>;
  /** The newest `limit` kept events of a payment, oldest first. */
  paymentEvents(externalId: string, limit: number, call: Call): Promise<Event[]>;
  paymentHistory(of: HistoryOf, call: Call): Promise<History>;

  requestPayout(request: RequestPayoutRequest, call: Call): Promise<Payout>;
  payoutHistory(of: HistoryOf, call: Call): Promise<History>;
  /** As `paymentStateAfter`. */
  payoutStateAfter(
    answer: Payout,
    externalId: string,
    call: Call,
  ): Promise<{ readonly state: PayoutState; readonly cursor: string }>;
  getPayout(request: GetPayoutRequest, call: Call): Promise<GetPayoutResponse>;
  watchPayout(request: WatchPayoutRequest, call: Call): AsyncIterable<Event>;

  /** `full_number` is set only for callers with `wallet:pan`. */
  findWalletItems(request: FindWalletItemsRequest, call: Call): Promise<WalletItem[]>;
  /** Undefined when nothing of an item was found in the service's answer. */
  getConfirmationStatus(
    request: GetConfirmationStatusRequest,
    call: Call,
  ): Promise<WalletItem | undefined>;
  deleteWalletItem(request: DeleteWalletItemRequest, call: Call): Promise<DeletedWalletItem>;

  updateSubscription(
    request: UpdateSubscriptionRequest,
    call: Call,
  ): Promise<UpdateSubscriptionResponse>;
  deactivateSubscription(
    request: DeactivateSubscriptionRequest,
    call: Call,
  ): Promise<DeactivateSubscriptionResponse>;

  getOperation(request: GetOperationRequest, call: Call): Promise<Operation>;

  listEvents(request: ListEventsRequest, call: Call): Promise<ListEventsResponse>;
  streamEvents(request: StreamEventsRequest, call: Call): AsyncIterable<Event>;
  createWatchToken(request: CreateWatchTokenRequest, call: Call): Promise<CreateWatchTokenResponse>;

  /** The budget of the caller's account, as the shared bucket knows it. */
  rateLimit(call: Call): RateLimitStatus;
}

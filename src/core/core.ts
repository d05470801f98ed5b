import type { MessageShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { Caller } from "../auth/caller.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { EventService } from "../gen/payments/v1/event_service_pb.ts";
import type { Operation } from "../gen/payments/v1/operation_pb.ts";
import { OperationService } from "../gen/payments/v1/operation_service_pb.ts";
import {
  type CreatePaymentResponse,
  type GetPaymentResponse,
  PaymentService,
} from "../gen/payments/v1/payment_service_pb.ts";
import {
  type GetPayoutResponse,
  PayoutService,
  type RequestPayoutResponse,
} from "../gen/payments/v1/payout_service_pb.ts";
import { SubscriptionService } from "../gen/payments/v1/subscription_service_pb.ts";
import type { DeletedWalletItem, WalletItem } from "../gen/payments/v1/wallet_pb.ts";
import { WalletService } from "../gen/payments/v1/wallet_service_pb.ts";
import type { Push } from "../ledger/log.ts";
import type { RateLimitStatus } from "../ratelimit/bucket.ts";

export type { Push } from "../ledger/log.ts";

/** The context of one call, the same from both edges. */
export interface Call {
  readonly caller: Caller;
  /** Aborts when the caller goes away or its deadline passes (reason: a TimeoutError). */
  readonly signal: AbortSignal;
  /** The caller's deadline, in milliseconds since the epoch. */
  readonly deadlineMs?: number | undefined;
  /** The edge set the deadline; the caller gave none. */
  readonly deadlineIsOurs?: boolean;
  /** The `Idempotency-Key` header as received. */
  readonly idempotencyKey?: string;
  /** The key that a GraphQL input contains; with a header too, both must be the same key. */
  readonly inputIdempotencyKey?: string;
  /** Called before the call ends, when its outcome is that of an earlier call with its key. */
  readonly onReplayed?: () => void;
  /**
   * Called when a stream is attached to the event log: it misses no event from then on. `from` is
   * the cursor of that position; undefined if the caller gave a cursor, or if the first event
   * carries the current state.
   */
  readonly onOpen?: (from: string | undefined) => void;
  /** Called when the call waits for events only: it needs no admission slot any more. */
  readonly onWait?: () => void;
  /** Called with the error that ends a stream early, at once, even if the reader does not read. */
  readonly onFail?: (error: Error) => void;
  /** Receives each live event when the edge has taken all earlier ones and waits for the next. */
  readonly push?: Push | undefined;
  /** Identifies the call in log records. */
  readonly requestId: string;
  /** Called with each external_id that the call asks for, in the form that logs may hold. */
  readonly onAbout?: (externalId: string) => void;
  /** How the caller is connected, for metrics: grpc, sse, websocket and the like. */
  readonly transport?: string;
}

/**
 * What a call that moves money returns; the state of its external_id never costs it its answer. The
 * cursor is empty when the log has nothing of the external_id or is away.
 */
export type PaymentAnswer = Told<CreatePaymentResponse, "payment" | "state" | "cursor">;
export type PayoutAnswer = Told<RequestPayoutResponse, "payout" | "state" | "cursor">;

/** Fields of a response, each of which is set. */
type Told<Response, Name extends keyof Response> = {
  readonly [Field in Name]-?: NonNullable<Response[Field]>;
};

/** One page of a list. Each `cursor` is a page token: of a page that begins behind it. */
export interface Page<Edge> {
  readonly edges: readonly Edge[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  /** The token of the next page, if there is one: a list may leave out the last edge of a page. */
  readonly endCursor?: string | undefined;
}

/** One page of the events of a payment or payout. */
export type History = Page<{ readonly cursor: string; readonly node: Event }>;

export type Instant = Pick<Timestamp, "seconds" | "nanos">;

/** One page of the list of payments or payouts. */
export type Listing<Of> = Page<{
  readonly cursor: string;
  readonly node: Of;
  readonly externalId: string;
  readonly firstSeenAt: Instant;
  readonly updatedAt: Instant;
}>;

/** The methods of the contract. Callers need the scope that each declares. */
export const methods = {
  ...{ ...PaymentService.method, ...PayoutService.method, ...WalletService.method },
  ...{ ...SubscriptionService.method, ...OperationService.method, ...EventService.method },
};

export type Methods = typeof methods;

/** What the use cases return that answer otherwise than with the response of their method. */
interface Answers {
  createPayment: PaymentAnswer;
  createRecurrentPayment: PaymentAnswer;
  confirmPayment: PaymentAnswer;
  /** With all that `getPayment` tells of each. */
  listPayments: Listing<GetPaymentResponse>;
  requestPayout: PayoutAnswer;
  /** As the gateway knows each, without asking the service. */
  listPayouts: Listing<GetPayoutResponse>;
  /** `full_number` is set only for callers with `wallet:pan`. */
  findWalletItems: WalletItem[];
  /** Undefined when the service's answer contains no field of an item. */
  getConfirmationStatus: WalletItem | undefined;
  deleteWalletItem: DeletedWalletItem;
  getOperation: Operation;
  listEvents: History;
}

type Answer<Name extends keyof Methods> = Methods[Name]["methodKind"] extends "server_streaming"
  ? AsyncIterable<Event>
  : Promise<Name extends keyof Answers ? Answers[Name] : MessageShape<Methods[Name]["output"]>>;

/**
 * The use cases, one for each method of the contract, which both edges call. Each takes the request of
 * its method, checks it (INVALID_ARGUMENT names every wrong field) and the caller's scope
 * (PERMISSION_DENIED), and throws only GatewayError. A watch is one async iterable, which ends when
 * `call.signal` aborts.
 */
export type Core = {
  [Name in keyof Methods]: (
    request: MessageShape<Methods[Name]["input"]>,
    call: Call,
  ) => Answer<Name>;
} & {
  /** The rate budget of the caller's account, as last known, without waiting. */
  rateLimit(call: Pick<Call, "caller">): RateLimitStatus;
};

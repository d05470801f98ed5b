import type { Operation } from "../gen/payments/v1/operation_pb.ts";
import type { GetOperationRequest } from "../gen/payments/v1/operation_service_pb.ts";
import type { Payment } from "../gen/payments/v1/payment_pb.ts";
import type {
  ConfirmPaymentRequest,
  CreatePaymentRequest,
  CreateRecurrentPaymentRequest,
  ResendCallbackRequest,
} from "../gen/payments/v1/payment_service_pb.ts";
import type { Payout } from "../gen/payments/v1/payout_pb.ts";
import type {
  GetPayoutRequest,
  RequestPayoutRequest,
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
import type { TurnTaker } from "../ratelimit/bucket.ts";
import type { Secret } from "../secrets/secret.ts";

/** One merchant's account at the payments service. */
export interface MerchantAccount {
  readonly name: string;
  /** Base address of the REST interface, without a slash at its end. */
  readonly url: string;
  readonly login: string;
  readonly password: Secret;
  /** Still accepted for callback signatures while the password is rotated. */
  readonly previousPasswords: readonly Secret[];
}

export interface SendOptions {
  /**
   * For calls that move money: cancels the call until it is sent, and not after that; a call that
   * was sent goes on to its answer or the upstream time-out. For all other calls: cancels the call,
   * down to the socket.
   */
  readonly signal: AbortSignal;
  /** The caller's deadline, in milliseconds since the epoch. */
  readonly deadlineMs?: number;
  /** Whose turn at the account's budget the call takes. Calls without a caller share turns. */
  readonly caller?: TurnTaker;
  /**
   * Called once, right before the request is written: from then on a failure without an understood
   * answer leaves the outcome unknown. If it throws, nothing is sent, and the call throws the same
   * error if that is a GatewayError, else UNAVAILABLE.
   */
  readonly onSent?: () => void;
}

/**
 * The payments service for one merchant account: a method per REST call. Requests must have passed
 * validation. Each request takes a token of the account's rate budget first. Reads that the
 * service fails to answer (`failed` in `verdict.ts`) are sent again, at most twice; every other
 * call is sent at most once.
 *
 * @throws GatewayError by the table of `error-codes.ts`: with `upstream` for an Error object;
 * UNAVAILABLE if the service cannot be reached, with `retryAfterMs` if the breaker refused the
 * call; UNKNOWN with `outcomeUnknown` for a call that moves money and was sent, but got no answer
 * that was understood.
 */
export interface Upstream {
  createPayment: Send<CreatePaymentRequest, Payment>;
  createRecurrentPayment: Send<CreateRecurrentPaymentRequest, Payment>;
  confirmPayment: Send<ConfirmPaymentRequest, Payment>;
  resendCallback: Send<ResendCallbackRequest, void>;
  requestPayout: Send<RequestPayoutRequest, Payout>;
  getPayout: Send<GetPayoutRequest, Payout>;
  findWalletItems: Send<FindWalletItemsRequest, WalletItem[]>;
  getConfirmationStatus: Send<GetConfirmationStatusRequest, WalletItem | undefined>;
  deleteWalletItem: Send<DeleteWalletItemRequest, DeletedWalletItem>;
  updateSubscription: Send<UpdateSubscriptionRequest, UpdateSubscriptionResponse>;
  deactivateSubscription: Send<DeactivateSubscriptionRequest, DeactivateSubscriptionResponse>;
  getOperation: Send<GetOperationRequest, Operation>;
  /** Refuses new calls, waits for those in flight, and closes all connections. */
  close(): Promise<void>;
}

type Send<Request, Result> = (request: Request, options: SendOptions) => Promise<Result>;

export {
  type Credentials,
  createPaymentsGateway,
  credentials,
  idempotencyKey,
  type PaymentsGateway,
} from "./client.ts";
export { type Failure, failureOf } from "./failure.ts";
export * from "./gen/payments/v1/error_pb.ts";
export * from "./gen/payments/v1/event_pb.ts";
export * from "./gen/payments/v1/event_service_pb.ts";
export * from "./gen/payments/v1/operation_pb.ts";
export * from "./gen/payments/v1/operation_service_pb.ts";
export * from "./gen/payments/v1/payment_input_pb.ts";
export * from "./gen/payments/v1/payment_pb.ts";
export * from "./gen/payments/v1/payment_service_pb.ts";
export * from "./gen/payments/v1/payout_pb.ts";
export * from "./gen/payments/v1/payout_service_pb.ts";
export * from "./gen/payments/v1/subscription_service_pb.ts";
export * from "./gen/payments/v1/wallet_pb.ts";
export * from "./gen/payments/v1/wallet_service_pb.ts";
export { nameOf } from "./name-of.ts";
export { type WatchOptions, watchEvents, watchPayment, watchPayout } from "./watch.ts";

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { PaymentAnswer, PayoutAnswer } from "../../src/core/core.ts";
import { type ErrorCode, GatewayError } from "../../src/errors.ts";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { PaymentSchema, PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { PayoutSchema, PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";

/** What a core returns for a payment whose state nobody knows. */
export function answeredPayment(init: MessageInitShape<typeof PaymentSchema> = {}): PaymentAnswer {
  return { payment: create(PaymentSchema, init), state: PaymentState.UNSPECIFIED, cursor: "" };
}

export function answeredPayout(init: MessageInitShape<typeof PayoutSchema> = {}): PayoutAnswer {
  return { payout: create(PayoutSchema, init), state: PayoutState.UNSPECIFIED, cursor: "" };
}

/** An error with every detail. */
export function errorOf(code: ErrorCode): GatewayError {
  return new GatewayError(code, `it is ${code}: 100 %, ü`, {
    reason: `BECAUSE_${code}`,
    retryAfterMs: 1_500,
    outcomeUnknown: { externalId: "order" },
    fields: [{ path: "a.b", message: "must not" }],
    upstream: create(UpstreamErrorSchema, { code: "x", message: "so it says", httpStatus: 400 }),
  });
}

import type { DescEnum } from "@bufbuild/protobuf";
import { ErrorTypeSchema } from "../../gen/payments/v1/error_pb.ts";
import {
  CallOutcomeSchema,
  EventKindSchema,
  EventSourceSchema,
  WaitUntilSchema,
} from "../../gen/payments/v1/event_pb.ts";
import {
  PaymentModeSchema,
  RecipientPaymentMethodTypeSchema,
} from "../../gen/payments/v1/payment_input_pb.ts";
import {
  FiscalizationStatusSchema,
  PaymentMethodTypeSchema,
  PaymentOperationSchema,
  PaymentStateSchema,
  PaymentStatusSchema,
} from "../../gen/payments/v1/payment_pb.ts";
import { PayoutStateSchema } from "../../gen/payments/v1/payout_pb.ts";
import { builder } from "./builder.ts";
import { describe } from "./descriptions.ts";

const refs = new Map(
  [
    CallOutcomeSchema,
    ErrorTypeSchema,
    EventKindSchema,
    EventSourceSchema,
    FiscalizationStatusSchema,
    PaymentMethodTypeSchema,
    PaymentModeSchema,
    PaymentOperationSchema,
    PaymentStateSchema,
    PaymentStatusSchema,
    PayoutStateSchema,
    RecipientPaymentMethodTypeSchema,
    WaitUntilSchema,
  ].map((desc) => [desc.typeName, enumType(desc)]),
);

/** The GraphQL enum of a proto enum. */
export function enumRef(desc: DescEnum) {
  const ref = refs.get(desc.typeName);
  if (!ref) throw new Error(`no GraphQL enum of ${desc.typeName}`);
  return ref;
}

/**
 * An enum's value in a response. The zero value and numbers outside this contract become null,
 * since GraphQL would fail the field for them.
 */
export function knownValue(desc: DescEnum, value: unknown): number | null {
  return typeof value === "number" && value !== 0 && desc.value[value] ? value : null;
}

/** Value names lack the enum's prefix. The zero value is left out: it is null in responses. */
function enumType(desc: DescEnum) {
  const prefix = desc.sharedPrefix?.toUpperCase() ?? "";
  return builder.enumType(desc.name, {
    description: describe(desc),
    values: Object.fromEntries(
      desc.values
        .filter((value) => value.number !== 0)
        .map((value) => [
          value.name.slice(prefix.length),
          { value: value.number, description: describe(value) },
        ]),
    ),
  });
}

import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { EventKind } from "../gen/payments/v1/event_pb.ts";
import { PaymentService } from "../gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../gen/payments/v1/payout_service_pb.ts";
import type { Kind } from "./kinds.ts";

/**
 * The calls that move money, by their names in the contract: what the option `moves_money` marks in
 * the proto. `operations` are the service's names for what the call asks for, likeliest first.
 */
export const moneyMethods = {
  CreatePayment: {
    method: PaymentService.method.createPayment,
    kind: EventKind.PAYMENT,
    operations: ["payment"],
  },
  CreateRecurrentPayment: {
    method: PaymentService.method.createRecurrentPayment,
    kind: EventKind.PAYMENT,
    operations: ["recurrent", "payment"],
  },
  ConfirmPayment: {
    method: PaymentService.method.confirmPayment,
    kind: EventKind.PAYMENT,
    operations: ["confirm"],
  },
  RequestPayout: {
    method: PayoutService.method.requestPayout,
    kind: EventKind.PAYOUT,
    operations: ["payout"],
  },
} as const satisfies Readonly<Record<string, MoneyFacts>>;

interface MoneyFacts {
  readonly method: DescMethod;
  readonly kind: Kind;
  readonly operations: readonly string[];
}

export type MoneyMethod = keyof typeof moneyMethods;

const all: readonly MoneyFacts[] = Object.values(moneyMethods);
const kindsOfMethods = new Map(all.map(({ method, kind }) => [method, kind]));
const requests = new Set<DescMessage>(all.map(({ method }) => method.input));

/** What a method moves money for; undefined for a method that moves none. */
export function moneyKindOf(method: DescMethod): Kind | undefined {
  return kindsOfMethods.get(method);
}

/** Whether a message is the request of a call that moves money. */
export function isMoneyRequest(desc: DescMessage): boolean {
  return requests.has(desc);
}

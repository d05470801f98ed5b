import type { Gateway } from "../../src/app/gateway.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";

/** A CreatePayment request with a card. */
export function paymentOf(externalId: string, number: string) {
  return {
    amount: "10.10",
    currency: "UAH",
    mode: PaymentMode.DIRECT,
    externalId,
    customer: { email: "customer@shop.example" },
    paymentMethod: {
      method: { case: "cc" as const, value: { number, cvv: "123", expMonth: 12, expYear: 2031 } },
    },
  };
}

/** Sends a GraphQL operation by POST and resolves with the answer. */
export async function graphql(
  { publicUrl }: Gateway,
  query: string,
  init: RequestInit = {},
): Promise<{ data: Record<string, unknown>; errors?: unknown }> {
  const response = await fetch(`${publicUrl}/graphql`, {
    ...init,
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as { data: Record<string, unknown>; errors?: unknown };
}

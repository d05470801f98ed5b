import type { CustomerIdentity } from "../gen/payments/v1/customer_pb.ts";

/**
 * The customer's own credentials as headers, in which names and values alternate; empty for a
 * customer with only an external id.
 */
export function customerHeaders(customer: CustomerIdentity | undefined): string[] {
  const { authToken, rid } = customer ?? {};
  return [
    ...(authToken === undefined ? [] : ["X-CUSTOMER-AUTH", authToken]),
    ...(rid === undefined ? [] : ["X-CUSTOMER-RID", rid]),
  ];
}

/** HTTP Basic authentication (RFC 7617), in UTF-8. */
export function basicAuthorization(login: string, password: string): string {
  return `Basic ${Buffer.from(`${login}:${password}`, "utf8").toString("base64")}`;
}

/** All headers of a merchant's requests except the customer's: with a body, and without one. */
export function merchantHeaders(authorization: string): { withBody: string[]; bodiless: string[] } {
  const bodiless = [
    ...["authorization", authorization],
    ...["accept", "application/json"],
    ...["accept-encoding", "identity"],
    ...["user-agent", "payments-gateway"],
  ];
  return { bodiless, withBody: [...bodiless, "content-type", "application/json"] };
}

import { create } from "@bufbuild/protobuf";
import { type CustomerIdentity, CustomerIdentitySchema } from "../gen/payments/v1/customer_pb.ts";
import type { Call } from "./core.ts";

/**
 * Which customer a call is for. A customer token that came in `X-CUSTOMER-AUTH` is forwarded as it
 * came, and then alone tells the upstream who the customer is (contract, section 6).
 */
export function customerOf(
  call: Call,
  given: CustomerIdentity | undefined,
): CustomerIdentity | undefined {
  const { customerToken } = call.caller;
  if (customerToken === undefined) return given;
  return create(CustomerIdentitySchema, {
    identity: { case: "authToken", value: customerToken },
  });
}

import { create } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import { type CustomerIdentity, CustomerIdentitySchema } from "../gen/payments/v1/customer_pb.ts";
import type { Call } from "./core.ts";

/**
 * Returns the customer that a call is for. A customer-bound caller acts only for the customer of
 * its token. A customer token from `X-CUSTOMER-AUTH` is forwarded unchanged, and then alone
 * identifies the customer to the service.
 * @throws GatewayError PERMISSION_DENIED when a customer-bound caller names anybody else
 */
export function customerOf(
  { caller }: Call,
  given: CustomerIdentity | undefined,
): CustomerIdentity | undefined {
  const { customer, customerToken } = caller;
  if (customer !== undefined && namesAnother(given, customer)) {
    throw new GatewayError("PERMISSION_DENIED", "the caller's token is for another customer", {
      reason: "CUSTOMER_FOREIGN",
    });
  }
  if (customerToken !== undefined) {
    return create(CustomerIdentitySchema, { authToken: customerToken });
  }
  if (customer !== undefined) return create(CustomerIdentitySchema, { externalId: customer });
  return given;
}

/** A customer-bound caller may give no token and no RID: only the service knows whose it is. */
function namesAnother(given: CustomerIdentity | undefined, customer: string): boolean {
  if (given?.authToken !== undefined || given?.rid !== undefined) return true;
  return given?.externalId !== undefined && given.externalId !== customer;
}

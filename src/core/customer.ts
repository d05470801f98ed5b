import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import { type CustomerIdentity, CustomerIdentitySchema } from "../gen/payments/v1/customer_pb.ts";
import type { Call } from "./core.ts";
import { validate } from "./validate.ts";

/**
 * The request, checked, with the customer that the call is for. A customer-bound caller acts only
 * for the customer of its token. A customer token from `X-CUSTOMER-AUTH` is forwarded unchanged,
 * and then alone identifies the customer to the service.
 * @throws GatewayError PERMISSION_DENIED when a customer-bound caller names anybody else
 */
export function forCustomer<Desc extends DescMessage>(
  schema: Desc,
  request: MessageShape<Desc> & { readonly customer?: CustomerIdentity | undefined },
  call: Call,
): MessageShape<Desc> {
  const customer = customerOf(call, request.customer);
  const asked = { ...request, ...(customer && { customer }) };
  validate(schema, asked);
  return asked;
}

function customerOf(
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

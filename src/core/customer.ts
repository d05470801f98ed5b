import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import { type CustomerIdentity, CustomerIdentitySchema } from "../gen/payments/v1/customer_pb.ts";
import type { WalletItem } from "../gen/payments/v1/wallet_pb.ts";
import type { Context } from "./context.ts";
import type { Call, Core } from "./core.ts";
import { sendOptions } from "./money-calls.ts";

/** The wallets and the billing subscriptions of customers. */
export function customerCases({ upstreamOf }: Context) {
  return {
    async findWalletItems(request, call) {
      const items = await upstreamOf(call).findWalletItems(request, sendOptions(call));
      return items.map((item) => withoutPan(item, call));
    },

    async getConfirmationStatus(request, call) {
      const item = await upstreamOf(call).getConfirmationStatus(request, sendOptions(call));
      return item && withoutPan(item, call);
    },

    deleteWalletItem: (request, call) =>
      upstreamOf(call).deleteWalletItem(request, sendOptions(call)),
    updateSubscription: (request, call) =>
      upstreamOf(call).updateSubscription(request, sendOptions(call)),
    deactivateSubscription: (request, call) =>
      upstreamOf(call).deactivateSubscription(request, sendOptions(call)),
  } satisfies Partial<Core>;
}

/** Removes the full number from a copy: the item may be shared with callers who may see it. */
function withoutPan(item: WalletItem, call: Call): WalletItem {
  if (item.card?.fullNumber === undefined || call.caller.scopes.has("wallet:pan")) return item;
  const card = { ...item.card };
  delete card.fullNumber;
  return { ...item, card };
}

/** Whether the requests of a method name a customer. */
export function isForCustomer({ input }: DescMethod): boolean {
  return input.fields.some(({ message }) => message === CustomerIdentitySchema);
}

/**
 * The request with the customer that the call is for. A customer-bound caller acts only for the
 * customer of its token. A customer token from `X-CUSTOMER-AUTH` is forwarded unchanged, and then
 * alone identifies the customer to the service.
 * @throws GatewayError PERMISSION_DENIED when a customer-bound caller names anybody else
 */
export function forCustomer<Request extends Message>(request: Request, call: Call): Request {
  const { customer: given } = request as { readonly customer?: CustomerIdentity };
  const customer = customerOf(call, given);
  return customer ? { ...request, customer } : request;
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

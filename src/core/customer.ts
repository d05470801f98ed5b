import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import { type CustomerIdentity, CustomerIdentitySchema } from "../gen/payments/v1/customer_pb.ts";
import {
  DeactivateSubscriptionRequestSchema,
  UpdateSubscriptionRequestSchema,
} from "../gen/payments/v1/subscription_service_pb.ts";
import type { WalletItem } from "../gen/payments/v1/wallet_pb.ts";
import {
  DeleteWalletItemRequestSchema,
  FindWalletItemsRequestSchema,
  GetConfirmationStatusRequestSchema,
} from "../gen/payments/v1/wallet_service_pb.ts";
import type { Context } from "./context.ts";
import type { Call, Core } from "./core.ts";
import { sendOptions } from "./money-calls.ts";
import { validate } from "./validate.ts";

/** The wallets and the billing subscriptions of customers. */
export function customerCases(context: Context) {
  const { upstreamOf } = context;
  return {
    async findWalletItems(request, call) {
      const asked = forCustomer(FindWalletItemsRequestSchema, request, call);
      const items = await upstreamOf(call).findWalletItems(asked, sendOptions(call));
      return items.map((item) => withoutPan(item, call));
    },

    async getConfirmationStatus(request, call) {
      const asked = forCustomer(GetConfirmationStatusRequestSchema, request, call);
      const item = await upstreamOf(call).getConfirmationStatus(asked, sendOptions(call));
      return item && withoutPan(item, call);
    },

    async deleteWalletItem(request, call) {
      const asked = forCustomer(DeleteWalletItemRequestSchema, request, call);
      return upstreamOf(call).deleteWalletItem(asked, sendOptions(call));
    },

    async updateSubscription(request, call) {
      const asked = forCustomer(UpdateSubscriptionRequestSchema, request, call);
      return upstreamOf(call).updateSubscription(asked, sendOptions(call));
    },

    async deactivateSubscription(request, call) {
      const asked = forCustomer(DeactivateSubscriptionRequestSchema, request, call);
      return upstreamOf(call).deactivateSubscription(asked, sendOptions(call));
    },
  } satisfies Partial<Core>;
}

/** Removes the full number from a copy: the item may be shared with callers who may see it. */
function withoutPan(item: WalletItem, call: Call): WalletItem {
  if (item.card?.fullNumber === undefined || call.caller.scopes.has("wallet:pan")) return item;
  const card = { ...item.card };
  delete card.fullNumber;
  return { ...item, card };
}

/**
 * The request, checked, with the customer that the call is for. A customer-bound caller acts only
 * for the customer of its token. A customer token from `X-CUSTOMER-AUTH` is forwarded unchanged,
 * and then alone identifies the customer to the service.
 * @throws GatewayError PERMISSION_DENIED when a customer-bound caller names anybody else
 */
function forCustomer<Desc extends DescMessage>(
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

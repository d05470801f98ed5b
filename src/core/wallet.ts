import type { WalletItem } from "../gen/payments/v1/wallet_pb.ts";
import {
  DeleteWalletItemRequestSchema,
  FindWalletItemsRequestSchema,
  GetConfirmationStatusRequestSchema,
} from "../gen/payments/v1/wallet_service_pb.ts";
import type { Context } from "./context.ts";
import type { Call, Core } from "./core.ts";
import { forCustomer } from "./customer.ts";
import { sendOptions } from "./money-calls.ts";

/** The wallet of a customer. */
export function walletCases(context: Context) {
  const upstreamOf = (call: Call) => context.account(call.caller.account).upstream;
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
  } satisfies Partial<Core>;
}

/** Removes the full number from a copy: the item may be shared with callers who may see it. */
function withoutPan(item: WalletItem, call: Call): WalletItem {
  if (item.card?.fullNumber === undefined || call.caller.scopes.has("wallet:pan")) return item;
  const card = { ...item.card };
  delete card.fullNumber;
  return { ...item, card };
}

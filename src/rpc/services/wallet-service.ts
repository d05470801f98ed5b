import type { ServiceImpl } from "@connectrpc/connect";
import type { Core } from "../../core/core.ts";
import type { WalletService } from "../../gen/payments/v1/wallet_service_pb.ts";
import { callOf } from "../gated-call.ts";

/** Implements the contract's WalletService: each method is one use case of the core. */
export function walletService(core: Core): ServiceImpl<typeof WalletService> {
  return {
    async findWalletItems(request, context) {
      return { items: await core.findWalletItems(request, callOf(context)) };
    },
    async getConfirmationStatus(request, context) {
      return { item: await core.getConfirmationStatus(request, callOf(context)) };
    },
    async deleteWalletItem(request, context) {
      const {
        $typeName: _,
        $unknown: __,
        ...deleted
      } = await core.deleteWalletItem(request, callOf(context));
      return deleted;
    },
  };
}

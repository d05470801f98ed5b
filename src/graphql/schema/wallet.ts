import { invalidFields } from "../../errors.ts";
import { CustomerIdentitySchema } from "../../gen/payments/v1/customer_pb.ts";
import {
  DeletedWalletItemSchema,
  WalletCardSchema,
  WalletItemSchema,
} from "../../gen/payments/v1/wallet_pb.ts";
import { WalletService } from "../../gen/payments/v1/wallet_service_pb.ts";
import type { Context } from "../context.ts";
import { notesOf, orNull } from "../loaders.ts";
import { type CostExtensions, upstreamCallCost } from "../operation-limits.ts";
import { builder } from "./builder.ts";
import { toMessage } from "./input.ts";
import { inputType } from "./input-type.ts";
import { describe, messageType } from "./message-type.ts";
import { mutation } from "./mutation.ts";

// Trusted services get the full card number, by RPC only.
messageType(WalletCardSchema, { omit: ["fullNumber"] });
const WalletItem = messageType(WalletItemSchema);

builder.objectField(WalletItem, "confirmation", (t) =>
  t.field({
    description:
      "The same item with the state of its confirmation, which the list does not have: " +
      "`isConfirmed` and `status` are set. Null when there is none.",
    extensions: { cost: upstreamCallCost } satisfies CostExtensions,
    type: WalletItem,
    resolve: (item, _, { loaders }) =>
      item.optionId ? orNull(loaders.walletConfirmation(notesOf(item).owner, item.optionId)) : null,
  }),
);

const customer = {
  description: "Whose. Left out by a caller whose token says it.",
  type: inputType(CustomerIdentitySchema),
};

/** @throws GatewayError INVALID_ARGUMENT for a token in a URL, which is in the logs of proxies */
function customerArg(given: object | null | undefined, { operation }: Pick<Context, "operation">) {
  const customer = given ? toMessage(CustomerIdentitySchema, { ...given }) : undefined;
  if (operation.request.isGet && customer?.authToken !== undefined) {
    const message = "must be sent by POST: the URL of a GET is logged";
    throw invalidFields([{ path: "customer.auth_token", message }]);
  }
  return customer;
}

builder.queryField("walletItems", (t) =>
  t.field({
    description: describe(WalletService.method.findWalletItems),
    // The upstream sets no limit; customers keep a few.
    extensions: { listSize: 10 } satisfies CostExtensions,
    type: [WalletItem],
    nullable: false,
    args: {
      customer: t.arg(customer),
      optionId: t.arg.string({ description: "Passed on to the payments service as given." }),
    },
    resolve: (_, { customer, optionId }, context) =>
      context.loaders.walletItems(customerArg(customer, context), optionId ?? undefined),
  }),
);

builder.queryField("walletConfirmation", (t) =>
  t.field({
    description: describe(WalletService.method.getConfirmationStatus),
    type: WalletItem,
    args: {
      customer: t.arg(customer),
      optionId: t.arg.id({
        description: "Id of the payment method in the wallet.",
        required: true,
      }),
    },
    resolve: (_, { customer, optionId }, context) =>
      context.loaders.walletConfirmation(customerArg(customer, context), optionId),
  }),
);

mutation("deleteWalletItem", messageType(DeletedWalletItemSchema));

import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import * as z from "zod";
import { DeletedWalletItemSchema, WalletItemSchema } from "../../src/gen/payments/v1/wallet_pb.ts";
import type { Card } from "../ledger/cards.ts";
import type { WalletEntry } from "../ledger/wallets.ts";
import { ApiError } from "./api-error.ts";
import { walletCustomer } from "./customers.ts";
import { isUuid, readBody, uuid } from "./fields.ts";
import { bodyOf, json, type Route } from "./http.ts";
import type { Parts } from "./parts.ts";

/** The three wallet endpoints (spec, Customer wallet). */
export function createWalletRoutes({ wallets, ledger }: Parts): Route[] {
  function itemsOf(customerId: string): readonly WalletEntry[] {
    const items = wallets.items(customerId);
    if (!items && !ledger.knowsCustomer(customerId)) {
      throw new ApiError("customer_profile_not_found", { param: "external_id" });
    }
    return items ?? [];
  }

  function entryOf(customerId: string, optionId: string): WalletEntry {
    itemsOf(customerId);
    const entry = wallets.item(customerId, optionId);
    if (!entry) throw new ApiError("payment_method_not_found", { param: "option_id" });
    return entry;
  }

  function defaultOf(customerId: string): WalletEntry {
    const items = itemsOf(customerId);
    const entry = items.find(({ isDefault }) => isDefault) ?? items[0];
    if (!entry) throw new ApiError("payment_method_not_found");
    return entry;
  }

  return [
    {
      method: "GET",
      path: "/api/customers/v1/wallet/find",
      handle(request) {
        const items = itemsOf(walletCustomer(request));
        // The spec types option_id as a boolean; the sandbox also accepts a card's id as a filter.
        const optionId = request.query.get("option_id") ?? "";
        const wanted = items.filter((item) => !isUuid.test(optionId) || item.optionId === optionId);
        // The spec shows one item, but a wallet may hold several: one is an object, else a list.
        const bodies = wanted.map(foundBody);
        return json(bodies.length === 1 ? bodies.join("") : `[${bodies.join(",")}]`);
      },
    },
    {
      method: "GET",
      path: "/api/customers/v1/wallet/confirmation/status",
      handle(request) {
        const customerId = walletCustomer(request);
        const optionId = request.query.get("option_id");
        // The spec does not require option_id: without it, use the default card.
        return json(statusBody(optionId ? entryOf(customerId, optionId) : defaultOf(customerId)));
      },
    },
    {
      method: "DELETE",
      path: "/api/customers/v1/wallet",
      handle(request) {
        const customerId = walletCustomer(request);
        const { option_id: optionId } = readBody(deleteBody, request.body);
        const removed = entryOf(customerId, optionId);
        wallets.remove(customerId, removed);
        const answer = { deleted: true, optionId: removed.optionId, type: itemType };
        return json(bodyOf(DeletedWalletItemSchema, answer));
      },
    },
  ];
}

/** The only item type that the sandbox stores; the spec does not list the types. */
const itemType = "card";

const deleteBody = z.object({ option_id: uuid, type: z.literal(itemType) });

function foundBody({ card, optionId, isDefault, name }: WalletEntry): string {
  return bodyOf(WalletItemSchema, {
    card: cardFields(card),
    optionId,
    isDefault,
    name,
    type: itemType,
  });
}

function statusBody({ card, optionId, isConfirmed }: WalletEntry): string {
  return bodyOf(WalletItemSchema, {
    card: cardFields(card),
    optionId,
    isConfirmed,
    status: isConfirmed ? "confirmed" : "waiting_for_verification",
    type: itemType,
  });
}

function cardFields(card: Card) {
  return {
    expiresAt: timestampFromDate(card.expiresAt),
    mask: card.mask,
    token: card.token,
    fullNumber: card.number?.reveal(),
    bankShortName: "SANDBOX",
    paymentSystem: card.paymentSystem,
  };
}

import {
  DeletedWalletItemSchema,
  type WalletItem,
  WalletItemSchema,
} from "../gen/payments/v1/wallet_pb.ts";
import {
  DeleteWalletItemRequestSchema,
  FindWalletItemsRequestSchema,
  GetConfirmationStatusRequestSchema,
  WalletService,
} from "../gen/payments/v1/wallet_service_pb.ts";
import { type DecodeOptions, decode, decodeList, isBlank } from "../wire/wire.ts";
import type { Client } from "./client.ts";
import { endpointOf } from "./endpoint.ts";
import { bodyOf, withQuery } from "./rest-call.ts";
import type { Upstream } from "./upstream.ts";

type WalletCalls = Pick<Upstream, "findWalletItems" | "getConfirmationStatus" | "deleteWalletItem">;

/** Spec, Endpoints, Customer wallet. */
export function walletCalls({ send, read }: Client): WalletCalls {
  return {
    async findWalletItems(request, options) {
      const { customer, optionId } = request;
      const query = { external_id: customer?.externalId, option_id: optionId };
      const call = {
        endpoint: find,
        target: withQuery(find.path, query),
        customer,
        schema: FindWalletItemsRequestSchema,
        request,
        read: readItems,
      };
      return read(call, options);
    },

    async getConfirmationStatus(request, options) {
      const { customer, optionId } = request;
      const query = { external_id: customer?.externalId, option_id: optionId };
      const call = {
        endpoint: confirmation,
        target: withQuery(confirmation.path, query),
        customer,
        schema: GetConfirmationStatusRequestSchema,
        request,
        read: readItem,
      };
      return read(call, options);
    },

    async deleteWalletItem(request, options) {
      const { customer } = request;
      const schema = DeleteWalletItemRequestSchema;
      const call = {
        endpoint: remove,
        target: withQuery(remove.path, { external_id: customer?.externalId }),
        customer,
        schema,
        request,
        body: bodyOf(schema, request),
        read: readDeleted,
      };
      return send(call, options);
    },
  };
}

const find = endpointOf(WalletService.method.findWalletItems);
const confirmation = endpointOf(WalletService.method.getConfirmationStatus);
const remove = endpointOf(WalletService.method.deleteWalletItem);

/** The spec shows one item as the answer; an empty object means no items. */
const readItems = (text: string, options: DecodeOptions) =>
  /^\s*\{\s*\}\s*$/.test(text) ? [] : decodeList(WalletItemSchema, text, options);

function readItem(text: string, options: DecodeOptions): WalletItem | undefined {
  const item = decode(WalletItemSchema, text, options);
  if (!isBlank(WalletItemSchema, { ...item })) return item;
  options.onFault?.({ path: "(body)", kind: "unknown_shape" });
  return undefined;
}

const readDeleted = (text: string, options: DecodeOptions) =>
  decode(DeletedWalletItemSchema, text, options);

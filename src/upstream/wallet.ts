import {
  DeletedWalletItemSchema,
  type WalletItem,
  WalletItemSchema,
} from "../gen/payments/v1/wallet_pb.ts";
import {
  DeleteWalletItemRequestSchema,
  type FindWalletItemsRequest,
  FindWalletItemsRequestSchema,
  type GetConfirmationStatusRequest,
  GetConfirmationStatusRequestSchema,
  WalletService,
} from "../gen/payments/v1/wallet_service_pb.ts";
import { type DecodeOptions, decode, decodeList, isBlank } from "../wire/wire.ts";
import type { Client } from "./client.ts";
import { bodyOf, type Endpoint, endpointOf, withQuery } from "./rest-call.ts";
import type { Upstream } from "./upstream.ts";

type WalletCalls = Pick<Upstream, "findWalletItems" | "getConfirmationStatus" | "deleteWalletItem">;

/** Spec, Endpoints, Customer wallet. */
export function walletCalls({ send, read }: Client): WalletCalls {
  return {
    async findWalletItems(request, options) {
      const schema = FindWalletItemsRequestSchema;
      return read({ ...lookUp(find, request), schema, request, read: readItems }, options);
    },

    async getConfirmationStatus(request, options) {
      const schema = GetConfirmationStatusRequestSchema;
      return read({ ...lookUp(confirmation, request), schema, request, read: readItem }, options);
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

/** Both look-ups name the customer and one of the customer's items. */
function lookUp(
  endpoint: Endpoint,
  { customer, optionId }: FindWalletItemsRequest | GetConfirmationStatusRequest,
) {
  const query = { external_id: customer?.externalId, option_id: optionId };
  return { endpoint, target: withQuery(endpoint.path, query), customer };
}

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

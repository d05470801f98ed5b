import type { Payout } from "../gen/payments/v1/payout_pb.ts";
import {
  GetPayoutRequestSchema,
  PayoutService,
  RequestPayoutRequestSchema,
} from "../gen/payments/v1/payout_service_pb.ts";
import type { PayoutEnds } from "../model/payout-statuses.ts";
import { decodePayout } from "../wire/payout.ts";
import type { DecodeOptions } from "../wire/wire.ts";
import type { Client } from "./client.ts";
import { bodyOf, endpointOf, withQuery } from "./rest-call.ts";
import type { Upstream } from "./upstream.ts";

/** Spec, Endpoints, Payouts. */
export function payoutCalls(
  { send, read }: Client,
  payoutEnds?: PayoutEnds,
): Pick<Upstream, "requestPayout" | "getPayout"> {
  const readPayout = (text: string, options: DecodeOptions) =>
    decodePayout(text, options, payoutEnds);
  return {
    async requestPayout(request, options) {
      const schema = RequestPayoutRequestSchema;
      const externalId = request.order?.externalId ?? "";
      const call = {
        endpoint: requestPayout,
        target: requestPayout.path,
        schema,
        request,
        body: bodyOf(schema, request),
        read: readPayout,
        isResult,
        about: { externalId, namedIn },
      };
      return send(call, options);
    },

    async getPayout(request, options) {
      const call = {
        endpoint: info,
        target: withQuery(info.path, { external_id: request.externalId }),
        schema: GetPayoutRequestSchema,
        request,
        read: readPayout,
        about: { externalId: request.externalId, namedIn },
      };
      return read(call, options);
    },
  };
}

const requestPayout = endpointOf(PayoutService.method.requestPayout);
const info = endpointOf(PayoutService.method.getPayout);

const namedIn = ({ externalId }: Payout) => externalId;

const isResult = ({ transactionId, status }: Payout) =>
  transactionId !== undefined && status !== undefined;

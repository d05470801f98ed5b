import { PayoutSchema } from "../../gen/payments/v1/payout_pb.ts";
import { noted } from "../loaders.ts";
import { upstreamCallCost } from "../operation-limits.ts";
import { PayoutEvent } from "./event.ts";
import { knownResource } from "./known-resource.ts";
import { mutation } from "./mutation.ts";

const Payout = knownResource("payout", PayoutSchema, PayoutEvent, upstreamCallCost);

mutation("requestPayout", Payout, ({ payout, ...state }, { order }) =>
  noted(payout, { name: order?.externalId ?? "", state }),
);

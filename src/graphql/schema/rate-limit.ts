import { requireService } from "../../core/authorize.ts";
import type { Core } from "../../core/core.ts";
import type { CostExtensions } from "../operation-limits.ts";
import { builder } from "./builder.ts";

const RateLimit = builder.objectRef<ReturnType<Core["rateLimit"]>>("RateLimit").implement({
  description: "The request budget that the merchant account has at the payments service.",
  fields: (t) => ({
    limit: t.exposeInt("limit", { description: "Requests a second.", nullable: false }),
    remaining: t.exposeInt("remaining", {
      description: "Requests that may be sent now.",
      nullable: false,
    }),
    resetSeconds: t.exposeInt("resetSeconds", {
      description: "Seconds until the budget is full again.",
      nullable: false,
    }),
  }),
});

builder.queryField("rateLimit", (t) =>
  t.field({
    description: "What is left of the account's request budget. Costs nothing of it.",
    extensions: { cost: 1 } satisfies CostExtensions,
    type: RateLimit,
    nullable: false,
    resolve: (_, __, { core, call }) => {
      requireService(call);
      return core.rateLimit(call);
    },
  }),
);

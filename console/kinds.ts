import type { KindName, Resource } from "../src/model/kinds.ts";

interface KindTexts {
  /** How reconciliation looks up an open call. */
  readonly lookup: string;
  /** What the service's id identifies, in words. */
  readonly subject: string;
  /** States by which they are listed. */
  readonly states: readonly string[];
  /** Path segment of the sandbox's endpoint, and the prefix of new external ids. */
  readonly resource: Resource;
  readonly idPrefix: string;
}

export const kindTexts: Readonly<Record<KindName, KindTexts>> = {
  payment: {
    lookup: "Asks for the callback again",
    subject: "payment",
    states: [
      ...["needs_operator", "unknown", "pending", "authorized", "paid", "failed"],
      ...["cancelled", "partially_refunded", "refunded"],
    ],
    resource: "payments",
    idPrefix: "order",
  },
  payout: {
    lookup: "Looks the payout up",
    subject: "transaction",
    states: ["needs_operator", "unknown", "pending", "paid", "failed"],
    resource: "payouts",
    idPrefix: "payout",
  },
};

export const kindNames = Object.keys(kindTexts) as readonly KindName[];

export function kindOfResource(resource: Resource): KindName {
  const kind = kindNames.find((name) => kindTexts[name].resource === resource);
  if (!kind) throw new Error(`no kind has the resource ${resource}`);
  return kind;
}

import type { KindName, Resource } from "../src/model/kinds.ts";

interface KindTexts {
  /** What reconciliation does about an open call. */
  readonly lookup: string;
  /** What the service's id of it names. */
  readonly subject: string;
  /** Of a dead letter. */
  readonly callback: string;
  /** Where the sandbox is asked to make one, and how its external_id begins. */
  readonly resource: Resource;
  readonly idPrefix: string;
  /** What pays when the amount decides. */
  readonly anyMethod: string;
}

export const kindTexts: Readonly<Record<KindName, KindTexts>> = {
  payment: {
    lookup: "Asks for the callback again",
    subject: "attempt",
    callback: "Payment callback",
    resource: "payments",
    idPrefix: "order",
    anyMethod: "with any card",
  },
  payout: {
    lookup: "Looks the payout up",
    subject: "transaction",
    callback: "Payout callback",
    resource: "payouts",
    idPrefix: "payout",
    anyMethod: "in cash",
  },
};

export const kindNames = Object.keys(kindTexts) as readonly KindName[];

export function kindOfResource(resource: Resource): KindName {
  const kind = kindNames.find((name) => kindTexts[name].resource === resource);
  if (!kind) throw new Error(`no kind has the resource ${resource}`);
  return kind;
}

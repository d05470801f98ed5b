/**
 * Policies for clients with a normalized cache. A payment or payout is one record by its
 * `externalId`, whichever document read it; everything else is part of what contains it. An event
 * never overwrites a payment: its `payment` is a `PaymentSnapshot`, which has no key.
 *
 * A document that reads a payment or payout selects `externalId`, as all of ours do. Use one cache
 * for one merchant account: two accounts may use the same `externalId`.
 */
import { objectTypes, possibleTypes } from "./schema-types.ts";

/**
 * For Apollo Client: `new InMemoryCache(apolloCache)`. Without it Apollo takes `id`, the payments
 * service's id of one attempt, as the key of the payment, and does not know that a
 * `PaymentServiceError` is an `Error`.
 */
export const apolloCache = {
  possibleTypes,
  typePolicies: {
    Payment: {
      keyFields: ["externalId"] as ["externalId"],
      // Another attempt's details and action replace the earlier ones: never a mixture of both.
      fields: { details: { merge: false }, action: { merge: false } },
    },
    Payout: { keyFields: ["externalId"] as ["externalId"] },
    // Has an `id`, but another selection of it (`Payment.operationInfo`) is as of another moment.
    Operation: { keyFields: false as const },
  },
};

/**
 * For urql's Graphcache: `cacheExchange({ keys: graphcacheKeys })`. It names every type, since
 * Graphcache warns of a type that has neither an `id` nor an entry here.
 */
export const graphcacheKeys: Record<string, (data: { externalId?: unknown }) => string | null> = {
  ...Object.fromEntries(objectTypes.map((name) => [name, () => null])),
  Payment: ({ externalId }) => String(externalId),
  Payout: ({ externalId }) => String(externalId),
};

/** For Relay: `new Environment({ getDataID: relayDataId, network, store })`. */
export function relayDataId(
  record: { readonly externalId?: unknown },
  typeName: string,
): string | undefined {
  const isKeyed = typeName === "Payment" || typeName === "Payout";
  return isKeyed && record.externalId ? `${typeName}:${record.externalId}` : undefined;
}

import type { KindName } from "../src/model/kinds.ts";
import type { Client } from "./client.ts";

/** A payment or payout in a list. */
export interface KnownItem {
  readonly externalId: string;
  /** Such as `PAID`; null when it is one that the gateway has no name for. */
  readonly state: string | null;
  readonly needsOperator: boolean;
  readonly firstSeenAtMs: number;
  /** payment_ids of all attempts, or the transaction_id. */
  readonly subjectIds: readonly string[];
  readonly amount: string | null;
  readonly currency: string | null;
}

export interface KnownList {
  readonly items: readonly KnownItem[];
  /** How many the search went through. */
  readonly searched: number;
  /** Where to go on; absent at the end of the list. */
  readonly next?: string | undefined;
}

/** What is listed. */
export interface KnownQuery {
  /** Such as `paid`, or `needs_operator`; all if it is "". */
  readonly state: string;
  /** Only those whose external_id has this text, or whose id at the service is this. */
  readonly search: string;
  /** `next` of the page before. */
  readonly after: string | undefined;
}

const pageSize = 50;
const maxSearched = 1_000;

/**
 * One page of the payments or payouts that the gateway knows, the one heard of last first, by its
 * GraphQL. A search goes through that list, a bounded number at a time.
 */
export async function knownList(
  client: Pick<Client, "query">,
  account: string,
  kind: KindName,
  { state, search, after }: KnownQuery,
  signal: AbortSignal,
): Promise<KnownList> {
  const states = state === "" ? {} : { states: [state.toUpperCase()] };
  const filter = state === "needs_operator" ? { needsOperator: true } : states;
  const items: KnownItem[] = [];
  let searched = 0;
  let next = after;
  do {
    const variables = { filter, first: pageSize, after: next };
    const { list } = await client.query<Listed>(queries[kind], variables, account, signal);
    const page = list.edges.map(itemOf);
    items.push(...page.filter((item) => search === "" || isFound(item, search)));
    searched += page.length;
    next = list.pageInfo.hasNextPage ? list.pageInfo.endCursor : undefined;
  } while (next !== undefined && items.length < pageSize && searched < maxSearched);
  return { items, searched, next };
}

function isFound({ externalId, subjectIds }: KnownItem, search: string): boolean {
  return subjectIds.includes(search) || externalId.toLowerCase().includes(search.toLowerCase());
}

const queryOf = (kind: string, filter: string, fields: string) =>
  `query List($filter: ${filter}, $first: Int, $after: String) {
    list: ${kind}s(filter: $filter, first: $first, after: $after, newestFirst: true) {
      edges { firstSeenAt node { externalId state needsOperator ${fields} } }
      pageInfo { hasNextPage endCursor }
    }
  }`;

const queries: Readonly<Record<KindName, string>> = {
  payment: queryOf(
    "payment",
    "PaymentFilter",
    "details { paymentId amount currency } operations { paymentId }",
  ),
  payout: queryOf("payout", "PayoutFilter", "transactionId amount: originalAmount currency"),
};

/** The data of one result of these queries. */
interface Listed {
  readonly list: {
    readonly edges: readonly {
      readonly firstSeenAt: string;
      readonly node: Pick<KnownItem, "externalId" | "state" | "needsOperator"> &
        Partial<Amount> & {
          readonly details?: (Amount & PaymentId) | null;
          readonly operations?: readonly PaymentId[] | null;
          readonly transactionId?: string | null;
        };
    }[];
    readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string };
  };
}

type Amount = Pick<KnownItem, "amount" | "currency">;
type PaymentId = { readonly paymentId: string | null };

function itemOf({ firstSeenAt, node }: Listed["list"]["edges"][number]): KnownItem {
  const { externalId, state, needsOperator, details, operations, transactionId } = node;
  const { amount = null, currency = null } = details ?? node;
  const ids = [transactionId, details?.paymentId, ...(operations ?? []).map((of) => of.paymentId)];
  return {
    ...{ externalId, state, needsOperator, amount, currency },
    firstSeenAtMs: Date.parse(firstSeenAt),
    subjectIds: [...new Set(ids.filter((id) => typeof id === "string" && id !== ""))] as string[],
  };
}

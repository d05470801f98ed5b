import { create, type DescEnum } from "@bufbuild/protobuf";
import * as z from "zod";
import type { Call, Core, Listing } from "../core/core.ts";
import { PaymentStateSchema } from "../gen/payments/v1/payment_pb.ts";
import { ListPaymentsRequestSchema } from "../gen/payments/v1/payment_service_pb.ts";
import { PayoutStateSchema } from "../gen/payments/v1/payout_pb.ts";
import { ListPayoutsRequestSchema } from "../gen/payments/v1/payout_service_pb.ts";
import type { KindName } from "../model/kinds.ts";
import type { KnownItem, KnownList } from "./console-api.ts";
import { nameOf } from "./history.ts";
import { callAs, Refused } from "./operator.ts";

/** What is listed of an account's payments or payouts. */
export const listQuery = z.object({
  /** Such as `paid`, or `needs_operator`; all without it. */
  state: z.string().max(50).optional(),
  /** Only those whose external_id has this text, or whose id at the service is this. */
  search: z.string().max(1_000).optional(),
  /** `next` of the page before. */
  after: z.string().max(1_000).optional(),
});

/**
 * One page of the payments or payouts that the gateway knows, the one heard of last first: the list
 * of `ListPayments`, which costs nothing of the rate budget. A search goes through that list, a
 * bounded number at a time.
 * @throws Refused 400 for a state that there is not
 */
export async function knownListOf(
  core: Lists,
  account: string,
  kind: KindName,
  { state = "", search, after = "" }: z.infer<typeof listQuery>,
): Promise<KnownList> {
  const call = callAs("console", account, ["events:read"]);
  const { states, read } = lists[kind];
  const number = states.values.find((value) => nameOf(states, value.number) === state)?.number;
  if (state !== "" && state !== needsOperator && number === undefined)
    throw new Refused(400, `state: there is no such state of a ${kind}`);
  const items: KnownItem[] = [];
  let searched = 0;
  let next: string | undefined = after;
  do {
    const request = {
      states: (number === undefined ? [] : [number]) as never[],
      ...(state === needsOperator && { needsOperator: true }),
      ...{ newestFirst: true, pageSize, pageToken: next },
    };
    const page = await read(core, request, call);
    items.push(...page.items.filter((item) => !search || isFound(item, search)));
    searched += page.items.length;
    next = page.next;
  } while (next !== undefined && items.length < pageSize && searched < maxSearched);
  return { items, searched, next };
}

const needsOperator = "needs_operator";
const pageSize = 50;
const maxSearched = 1_000;

function isFound({ externalId, subjectIds }: KnownItem, search: string): boolean {
  return subjectIds.includes(search) || externalId.toLowerCase().includes(search.toLowerCase());
}

type Lists = Pick<Core, "listPayments" | "listPayouts">;

interface Request {
  readonly states: never[];
  readonly needsOperator?: boolean;
  readonly newestFirst: boolean;
  readonly pageSize: number;
  readonly pageToken: string;
}

interface List {
  readonly states: DescEnum;
  read(core: Lists, request: Request, call: Call): Promise<Pick<KnownList, "items" | "next">>;
}

const lists: Readonly<Record<KindName, List>> = {
  payment: {
    states: PaymentStateSchema,
    async read(core, request, call) {
      const list = await core.listPayments(create(ListPaymentsRequestSchema, request), call);
      const items = list.edges.map((edge) => {
        const { payment, operations } = edge.node;
        const { amount, currency, paymentId } = payment?.details ?? {};
        const ids = [paymentId, ...operations.map(({ paymentId }) => paymentId)];
        return itemOf(edge, PaymentStateSchema, ids, amount, currency);
      });
      return { items, next: list.endCursor };
    },
  },
  payout: {
    states: PayoutStateSchema,
    async read(core, request, call) {
      const list = await core.listPayouts(create(ListPayoutsRequestSchema, request), call);
      const items = list.edges.map((edge) => {
        const { originalAmount, currency, transactionId } = edge.node.payout ?? {};
        return itemOf(edge, PayoutStateSchema, [transactionId], originalAmount, currency);
      });
      return { items, next: list.endCursor };
    },
  },
};

function itemOf(
  edge: Listing<{ readonly state: number; readonly needsOperator: boolean }>["edges"][number],
  states: DescEnum,
  ids: readonly (string | undefined)[],
  amount: string | undefined,
  currency: string | undefined,
): KnownItem {
  const { node, externalId, firstSeenAt } = edge;
  return {
    ...{ externalId, needsOperator: node.needsOperator, state: nameOf(states, node.state) ?? "" },
    firstSeenAtMs: Number(firstSeenAt.seconds) * 1_000 + Math.floor(firstSeenAt.nanos / 1_000_000),
    subjectIds: [...new Set(ids.filter((id) => id !== undefined && id !== ""))] as string[],
    amount: amount || undefined,
    currency: currency || undefined,
  };
}

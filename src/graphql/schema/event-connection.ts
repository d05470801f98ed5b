import type { History, HistoryPage } from "../../core/core.ts";
import { invalidFields } from "../../core/validate.ts";
import type { KindName } from "../../model/kinds.ts";
import type { CostExtensions } from "../operation-cost.ts";
import { builder } from "./builder.ts";
import { PaymentEvent, PayoutEvent } from "./event.ts";

const maxPage = 100;
const defaultPage = 20;

interface PageInfo {
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  readonly startCursor: string | undefined;
  readonly endCursor: string | undefined;
}

const PageInfo = builder.objectRef<PageInfo>("PageInfo").implement({
  description: "Where a page stands in its list, by the Relay specification.",
  fields: (t) => ({
    hasNextPage: t.exposeBoolean("hasNextPage", {
      description: "Whether there was another page when this one was read.",
      nullable: false,
    }),
    hasPreviousPage: t.exposeBoolean("hasPreviousPage", {
      description: "Whether the page begins behind another one: `after` was given.",
      nullable: false,
    }),
    startCursor: t.exposeString("startCursor", {
      description: "Cursor of the first edge. Null when there is none.",
    }),
    endCursor: t.exposeString("endCursor", {
      description: "Cursor of the last edge: give it as `after` to see the next page.",
    }),
  }),
});

/** Defines the type of a page of events. */
function eventConnection(kind: KindName, event: typeof PaymentEvent, name: string) {
  const Edge = builder.objectRef<History["edges"][number]>(`${name}Edge`).implement({
    description: `An event of the ${kind}, and its place in the list.`,
    fields: (t) => ({
      cursor: t.exposeString("cursor", {
        description:
          "The event's place in this list, good for `after` in the same order, and for `page_token` " +
          "of the RPC `ListEvents`. Watches take `node.cursor` instead.",
        nullable: false,
      }),
      node: t.field({
        description: "The event.",
        type: event,
        nullable: false,
        resolve: ({ node }) => node,
      }),
    }),
  });
  return builder.objectRef<History>(`${name}Connection`).implement({
    description: `A page of the events of a ${kind}.`,
    fields: (t) => ({
      edges: t.field({
        description: "The events, in the order that was asked for.",
        extensions: { cost: 0 } satisfies CostExtensions,
        type: [Edge],
        nullable: false,
        resolve: ({ edges }) => edges,
      }),
      pageInfo: t.field({
        description: "Whether there is more, and where the page begins and ends.",
        extensions: { cost: 0 } satisfies CostExtensions,
        type: PageInfo,
        nullable: false,
        resolve: ({ edges, hasNextPage, hasPreviousPage }) => ({
          ...{ hasNextPage, hasPreviousPage },
          startCursor: edges.at(0)?.cursor,
          endCursor: edges.at(-1)?.cursor,
        }),
      }),
    }),
  });
}

export const PaymentEventConnection = eventConnection("payment", PaymentEvent, "PaymentEvent");
export const PayoutEventConnection = eventConnection("payout", PayoutEvent, "PayoutEvent");

/** What the field `eventsConnection` of a payment and of a payout have in common. */
export function connectionField(kind: KindName) {
  return {
    description:
      `All that became known of the ${kind} and is kept, a page at a time: the list of the RPC ` +
      "`ListEvents`. What is added meanwhile shifts no page: it comes at the end of a list that " +
      "begins with the oldest event, and is not in one that begins with the newest. CURSOR_EXPIRED " +
      "says that events behind `after` are no longer kept: begin again without it. Needs the scope " +
      `\`${kind}s:read\`.`,
    extensions: {
      listSize: { argument: "first", byDefault: defaultPage },
    } satisfies CostExtensions,
    // Nullable, so that a missing scope or an expired cursor does not fail the whole response.
    nullable: true,
  } as const;
}

type ArgBuilder = Parameters<Parameters<typeof builder.queryField>[1]>[0]["arg"];

export function pageArgs(arg: ArgBuilder) {
  return {
    first: arg.int({
      description: `How many at most, 1 to ${maxPage}.`,
      defaultValue: defaultPage,
    }),
    after: arg.string({
      description:
        "Go on behind this place: `pageInfo.endCursor` of the page before, with the same " +
        "`newestFirst`.",
    }),
    newestFirst: arg.boolean({
      description: "Begin with the newest event. Default: with the oldest.",
      defaultValue: false,
    }),
  };
}

/** @throws GatewayError INVALID_ARGUMENT */
export function pageOf(args: {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly newestFirst?: boolean | null | undefined;
}): HistoryPage {
  const { first, after, newestFirst } = args;
  const size = first ?? defaultPage;
  if (size < 1 || size > maxPage) {
    throw invalidFields([{ path: "first", message: `must be 1 to ${maxPage}` }]);
  }
  return { first: size, after: after ?? "", newestFirst: newestFirst ?? false };
}

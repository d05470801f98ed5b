import type { KindName } from "../../model/kinds.ts";
import type { CostExtensions } from "../operation-cost.ts";
import { connectionType, pageArgs, pageLength } from "./connection.ts";
import { PaymentEvent, PayoutEvent } from "./event.ts";

/** Defines the type of a page of events. */
function eventConnection(kind: KindName, event: typeof PaymentEvent, name: string) {
  return connectionType(name, event, {
    connection: `A page of the events of a ${kind}.`,
    edges: "The events, in the order that was asked for.",
    edge: `An event of the ${kind}, and its place in the list.`,
    cursor:
      "The event's place in this list, good for `after` in the same order, and for `page_token` " +
      "of the RPC `ListEvents`. Watches take `node.cursor` instead.",
    node: "The event.",
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
    extensions: { listSize: pageLength } satisfies CostExtensions,
    // Nullable, so that a missing scope or an expired cursor does not fail the whole response.
    nullable: true,
  } as const;
}

export function eventPageArgs(arg: Parameters<typeof pageArgs>[0]) {
  return pageArgs(arg, "Begin with the newest event. Default: with the oldest.");
}

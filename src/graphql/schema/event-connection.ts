import type { KindName } from "../../model/kinds.ts";
import { connectionType } from "./connection.ts";
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

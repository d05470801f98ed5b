import type { DescEnum, DescField } from "@bufbuild/protobuf";
import type { Listing } from "../../core/core.ts";
import type { Payment } from "../../gen/payments/v1/payment_pb.ts";
import type {
  GetPaymentResponseSchema,
  ListPaymentsRequestSchema,
} from "../../gen/payments/v1/payment_service_pb.ts";
import type { Payout } from "../../gen/payments/v1/payout_pb.ts";
import type {
  GetPayoutResponseSchema,
  ListPayoutsRequestSchema,
} from "../../gen/payments/v1/payout_service_pb.ts";
import type { KindName } from "../../model/kinds.ts";
import { createLive, watchOf } from "../context.ts";
import { received } from "../live.ts";
import { externalIdOf, orNull, stateOf } from "../loaders.ts";
import type { CostExtensions } from "../operation-limits.ts";
import { builder } from "./builder.ts";
import { connectionType, type ObjectType, pageArgs, pageLength, pageOf } from "./connection.ts";
import type { PaymentEvent } from "./event.ts";
import { defineInput, inputField } from "./input-type.ts";
import { describe, enumRef, knownValue } from "./message-type.ts";

/** How payments and payouts differ, and what their types say in words of their own. */
interface Known {
  readonly externalId: DescField;
  /** What is told of it by RPC, and which of them a list can be limited to. */
  readonly answer: typeof GetPaymentResponseSchema | typeof GetPayoutResponseSchema;
  readonly filter: typeof ListPaymentsRequestSchema | typeof ListPayoutsRequestSchema;
  /** The type of its events, and the description of their stream. */
  readonly event: typeof PaymentEvent;
  readonly watch: string;
  /** Description of the query field for one, and what that costs. */
  readonly one: string;
  readonly cost: number;
}

/**
 * Adds what a payment and a payout have in common: fields, the queries for one and for all, and the
 * stream of its events.
 */
export function addKnownResource<Resource extends Payment | Payout>(
  kind: KindName,
  resource: ObjectType<Resource>,
  known: Known,
): void {
  const node = resource as ObjectType<Payment | Payout>;
  addFields(kind, node, known);
  builder.queryField(kind, (t) =>
    t.field({
      description: known.one,
      extensions: { cost: known.cost } satisfies CostExtensions,
      type: node,
      args: { externalId: t.arg.id({ description: "The merchant's own id.", required: true }) },
      resolve: (_, { externalId }, { loaders }) =>
        orNull<Payment | Payout>(loaders[kind](externalId)),
    }),
  );
  addList(kind, node, known);
  addWatch(kind, known);
}

function addList(
  kind: KindName,
  node: ObjectType<Payment | Payout>,
  { filter: { field } }: Known,
): void {
  const { name } = node;
  const { Connection, Edge } = connectionType(node, {
    ...{ all: `the ${kind}s that the gateway knows`, one: `A ${kind}`, rpc: `List${name}s` },
    edges:
      "In the order that was asked for. A page may have fewer than `first`, even none, while " +
      "`hasNextPage` says that there are more.",
  });
  builder.objectField(Edge, "firstSeenAt", (t) =>
    t.field({
      type: "DateTime",
      nullable: false,
      description: `When the gateway first heard of the ${kind}.`,
      resolve: (edge) => (edge as Listing<Payment | Payout>["edges"][number]).firstSeenAt,
    }),
  );
  const filters = [field.states, field.needsOperator, field.firstSeenAfter, field.firstSeenBefore];
  const Filter = defineInput(
    `${name}Filter`,
    `Which ${kind}s: those for which all of this is true when the page is read.`,
    filters.map(inputField),
  );
  builder.queryField(`${kind}s`, (t) =>
    t.field({
      type: Connection,
      nullable: false,
      description:
        `The ${kind}s that the gateway knows, in the order in which it first heard of each, a page at ` +
        `a time: the list of the RPC \`List${name}s\`. A ${kind} keeps its place while it changes, so ` +
        "pages neither skip nor repeat one; what is heard of meanwhile comes at the end of a list " +
        "that begins with the oldest, and is not in one that begins with the newest. Needs the scope " +
        "`events:read`. Costs nothing of the request budget at the payments service.",
      extensions: { cost: 1, listSize: pageLength } satisfies CostExtensions,
      args: {
        filter: t.arg({ description: "Which. Default: all.", type: Filter }),
        ...pageArgs(
          t.arg,
          "Begin with the one that was heard of last. Default: with the one that was heard of first.",
        ),
      },
      // A filter's field that is null counts as absent.
      resolve: (_, { filter, ...page }, { loaders }) =>
        loaders[`${kind}s` as const]({ ...filter, ...pageOf(page) } as never),
    }),
  );
}

function addFields(
  kind: KindName,
  node: ObjectType<Payment | Payout>,
  { externalId, answer: { field }, event }: Known,
): void {
  const states = field.state.enum as DescEnum;
  const { Connection } = connectionType(event, {
    ...{ all: `the events of a ${kind}`, one: `An event of the ${kind}`, rpc: "ListEvents" },
    edges: "The events, in the order that was asked for.",
  });
  builder.objectFields(node, (t) => ({
    externalId: t.string({
      description: describe(externalId),
      nullable: false,
      resolve: (resource) => externalIdOf(resource),
    }),
    state: t.field({
      description: describe(field.state),
      type: enumRef(states) as never,
      resolve: (resource) => knownValue(states, stateOf(resource)?.state) as never,
    }),
    cursor: t.string({
      description: describe(field.cursor),
      resolve: (resource) => stateOf(resource)?.cursor || null,
    }),
    outcomeUnknown: t.boolean({
      description:
        `${describe(field.outcomeUnknown)} Told of ${kind}s that were read by \`${kind}\` or ` +
        `\`${kind}s\`, else false.`,
      nullable: false,
      resolve: (resource) => stateOf(resource)?.outcomeUnknown ?? false,
    }),
    needsOperator: t.boolean({
      description: `${describe(field.needsOperator)} Told as \`outcomeUnknown\` is.`,
      nullable: false,
      resolve: (resource) => stateOf(resource)?.needsOperator ?? false,
    }),
    eventsConnection: t.field({
      description:
        `All that became known of the ${kind} and is kept, a page at a time: the list of the RPC ` +
        "`ListEvents`. What is added meanwhile shifts no page: it comes at the end of a list that " +
        "begins with the oldest event, and is not in one that begins with the newest. CURSOR_EXPIRED " +
        "says that events behind `after` are no longer kept: begin again without it. Needs the scope " +
        `\`${kind}s:read\`.`,
      extensions: { listSize: pageLength } satisfies CostExtensions,
      // Nullable, so that a missing scope or an expired cursor does not fail the whole response.
      nullable: true,
      type: Connection,
      args: pageArgs(t.arg, "Begin with the newest event. Default: with the oldest."),
      resolve: (resource, args, { loaders }) =>
        loaders.of(resource).history(kind, externalIdOf(resource), pageOf(args)),
    }),
  }));
}

function addWatch(kind: KindName, { event: type, watch: description }: Known): void {
  builder.subscriptionField(`${kind}Updated`, (t) =>
    t.field({
      ...{ description, type, nullable: false },
      args: {
        externalId: t.arg.id({
          description: `The ${kind}'s externalId. It need not exist yet.`,
          required: true,
        }),
        after: t.arg.string({
          description:
            "Go on behind the event with this cursor; `earliest` begins with the oldest event that is " +
            "kept. The header `Last-Event-ID`, which an `EventSource` " +
            "sends by itself when it connects again, goes before it.",
        }),
        untilFinal: t.arg.boolean({
          description:
            "End the stream after the first event with `final: true` of an operation that pays, once no " +
            "call for the externalId is open, and after a `callOutcome` of NOT_DONE or NEEDS_OPERATOR. A " +
            "refund, cancellation or look-up does not end it.",
          defaultValue: false,
        }),
      },
      subscribe: (_, { externalId, untilFinal, after }, context) =>
        createLive(context, after, watchOf(kind, externalId, untilFinal ?? false)),
      resolve: (delivery) => received(delivery),
    }),
  );
}

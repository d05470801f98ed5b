import type { DescEnum, DescField } from "@bufbuild/protobuf";
import type { Listing } from "../../core/core.ts";
import type { Payment } from "../../gen/payments/v1/payment_pb.ts";
import type { Payout } from "../../gen/payments/v1/payout_pb.ts";
import type { KindName } from "../../model/kinds.ts";
import { externalIdOf, stateOf } from "../loaders.ts";
import type { CostExtensions } from "../operation-cost.ts";
import { builder } from "./builder.ts";
import { connectionType, type ObjectType, pageArgs, pageLength, pageOf } from "./connection.ts";
import { describe } from "./descriptions.ts";
import { enumRef, knownValue } from "./enums.ts";
import type { PaymentEventConnection } from "./event.ts";
import { orNull } from "./link.ts";

/** How payments and payouts differ, and what their types say in words of their own. */
interface Known {
  readonly externalId: DescField;
  readonly states: DescEnum;
  /** Description of its state. */
  readonly state: string;
  /** Which calls move money for it. */
  readonly moneyCall: string;
  readonly events: typeof PaymentEventConnection;
  /** Description of the query field for one, and what that costs. */
  readonly one: string;
  readonly cost: number;
}

/** Adds what a payment and a payout have in common: fields, and the queries for one and for all. */
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
}

function addList(
  kind: KindName,
  node: ObjectType<Payment | Payout>,
  { states: stateDesc }: Known,
): void {
  const { name } = node;
  const { Connection, Edge } = connectionType(name, node, {
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
  const Filter = builder.inputType(`${name}Filter`, {
    description: `Which ${kind}s: those for which all of this is true when the page is read.`,
    fields: (t) => ({
      states: t.field({
        description: "Only those in one of these states. Default: all.",
        type: [enumRef(stateDesc)] as never,
      }),
      needsOperator: t.boolean({
        description:
          "Only those that need an operator (true), or only the others (false). Default: all.",
      }),
      firstSeenAfter: t.field({
        description: "Only those that were first heard of later than this.",
        type: "DateTime",
      }),
      firstSeenBefore: t.field({
        description: "Only those that were first heard of earlier than this.",
        type: "DateTime",
      }),
    }),
  });
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
      resolve: (_, { filter, ...page }, { loaders }) => {
        const { states, needsOperator, firstSeenAfter, firstSeenBefore } = filter ?? {};
        return loaders[`${kind}s` as const]({
          ...pageOf(page),
          states: (states ?? []) as never[],
          ...(typeof needsOperator === "boolean" && { needsOperator }),
          ...(firstSeenAfter && { firstSeenAfter }),
          ...(firstSeenBefore && { firstSeenBefore }),
        });
      },
    }),
  );
}

function addFields(
  kind: KindName,
  node: ObjectType<Payment | Payout>,
  { externalId, states, state, moneyCall, events }: Known,
): void {
  builder.objectFields(node, (t) => ({
    externalId: t.string({
      description: describe(externalId),
      nullable: false,
      resolve: (resource) => externalIdOf(resource),
    }),
    state: t.field({
      description: state,
      type: enumRef(states) as never,
      resolve: (resource) => knownValue(states, stateOf(resource)?.state) as never,
    }),
    cursor: t.string({
      description:
        `Give it to \`${kind}Updated\` as \`after\` to see all that comes after this state. Null when there ` +
        "was no event yet.",
      resolve: (resource) => stateOf(resource)?.cursor || null,
    }),
    outcomeUnknown: t.boolean({
      description:
        `${moneyCall} for this externalId is out and has no understood answer: the money may have ` +
        `moved, whatever the state says. Told of ${kind}s that were read by \`${kind}\` or \`${kind}s\`, ` +
        "else false.",
      nullable: false,
      resolve: (resource) => stateOf(resource)?.outcomeUnknown ?? false,
    }),
    needsOperator: t.boolean({
      description:
        `The gateway could not find out in time what became of the ${kind} or of such a call: look at ` +
        "the payments service, by hand. Told as `outcomeUnknown` is.",
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
      type: events,
      args: pageArgs(t.arg, "Begin with the newest event. Default: with the oldest."),
      resolve: (resource, args, { loaders }) =>
        loaders.of(resource).history(kind, externalIdOf(resource), pageOf(args)),
    }),
  }));
}

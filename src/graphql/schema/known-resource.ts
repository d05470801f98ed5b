import type { DescEnum, DescField } from "@bufbuild/protobuf";
import { type Listing, methods } from "../../core/core.ts";
import type { Payment, PaymentSchema } from "../../gen/payments/v1/payment_pb.ts";
import type { Payout, PayoutSchema } from "../../gen/payments/v1/payout_pb.ts";
import type { KindName } from "../../model/kinds.ts";
import { createWatch } from "../context.ts";
import { received } from "../live.ts";
import { externalIdOf, names, notesOf, orNull } from "../loaders.ts";
import type { CostExtensions } from "../operation-limits.ts";
import { builder } from "./builder.ts";
import { connectionType, type ObjectType, pageArgs, pageLength, pageOf } from "./connection.ts";
import type { PaymentEvent } from "./event.ts";
import { defineInput, inputField } from "./input-type.ts";
import { describe, enumRef, knownValue, messageType } from "./message-type.ts";

/**
 * Defines the type of a payment or payout, with what both have in common: fields, the queries for one
 * and for all, and the stream of its events.
 * @param cost of the query field for one
 */
export function knownResource<Desc extends typeof PaymentSchema | typeof PayoutSchema>(
  kind: KindName,
  desc: Desc,
  event: typeof PaymentEvent,
  cost: number,
) {
  const resource = messageType<Desc>(desc, { omit: ["externalId" as never] });
  const node = resource as unknown as ObjectType<Payment | Payout>;
  addFields(kind, node, desc.field.externalId, event);
  builder.queryField(kind, (t) =>
    t.field({
      description: describe(methods[names[kind].get]),
      extensions: { cost } satisfies CostExtensions,
      type: node,
      args: { externalId: t.arg.id({ description: "The merchant's own id.", required: true }) },
      resolve: (_, { externalId }, { loaders }) => orNull(loaders.known(kind, externalId)),
    }),
  );
  addList(kind, node);
  addWatch(kind, event);
  return resource;
}

function addList(kind: KindName, node: ObjectType<Payment | Payout>): void {
  const { name } = node;
  const list = methods[names[kind].list];
  const { field } = list.input;
  const all = `the ${kind}s that the gateway knows`;
  const { Connection, Edge } = connectionType(node, all, `A ${kind}`);
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
      description: `${describe(list)} Needs the scope \`events:read\`.`,
      extensions: { cost: 1, listSize: pageLength } satisfies CostExtensions,
      args: {
        filter: t.arg({ description: "Which. Default: all.", type: Filter }),
        ...pageArgs(t.arg, describe(field.newestFirst)),
      },
      // A filter's field that is null counts as absent.
      resolve: (_, { filter, ...page }, { loaders }) =>
        loaders.list(kind, { ...filter, ...pageOf(page) } as never),
    }),
  );
}

function addFields(
  kind: KindName,
  node: ObjectType<Payment | Payout>,
  externalId: DescField,
  event: typeof PaymentEvent,
): void {
  const { field } = methods[names[kind].get].output;
  const states = field.state.enum as DescEnum;
  const all = `the events of a ${kind}`;
  const { Connection } = connectionType(event, all, `An event of the ${kind}`);
  builder.objectFields(node, (t) => ({
    externalId: t.string({
      description: describe(externalId),
      nullable: false,
      resolve: (resource) => externalIdOf(resource),
    }),
    state: t.field({
      description: describe(field.state),
      type: enumRef(states) as never,
      resolve: (resource) => knownValue(states, notesOf(resource).state?.state) as never,
    }),
    cursor: t.string({
      description: describe(field.cursor),
      resolve: (resource) => notesOf(resource).state?.cursor || null,
    }),
    ...Object.fromEntries(
      (["outcomeUnknown", "needsOperator"] as const).map((name) => [
        name,
        t.boolean({
          description:
            `${describe(field[name])} Told of ${kind}s that were read by \`${kind}\` or ` +
            `\`${kind}s\`, else false.`,
          nullable: false,
          resolve: (resource) => notesOf(resource).state?.[name] ?? false,
        }),
      ]),
    ),
    eventsConnection: t.field({
      description: describe(methods.listEvents),
      extensions: { listSize: pageLength } satisfies CostExtensions,
      // Nullable, so that a missing scope or an expired cursor does not fail the whole response.
      nullable: true,
      type: Connection,
      args: pageArgs(t.arg, describe(methods.listEvents.input.field.newestFirst)),
      resolve: (resource, args, { loaders }) =>
        loaders.of(resource).history(kind, externalIdOf(resource), pageOf(args)),
    }),
  }));
}

function addWatch(kind: KindName, type: typeof PaymentEvent): void {
  const watch = methods[names[kind].watch];
  const { field } = watch.input;
  builder.subscriptionField(`${kind}Updated`, (t) =>
    t.field({
      ...{ description: describe(watch), type, nullable: false },
      args: {
        externalId: t.arg.id({ description: describe(field.externalId), required: true }),
        after: t.arg.string({
          description:
            `${describe(field.afterCursor)} \`earliest\` begins with the oldest event that is kept. ` +
            "The header `Last-Event-ID`, which an `EventSource` sends by itself when it connects " +
            "again, goes before it.",
        }),
        untilFinal: t.arg.boolean({
          description: describe(field.untilFinal),
          defaultValue: false,
        }),
      },
      subscribe: (_, { externalId, untilFinal, after }, context) =>
        createWatch(context, kind, externalId, untilFinal ?? false, after),
      resolve: (delivery) => received(delivery),
    }),
  );
}

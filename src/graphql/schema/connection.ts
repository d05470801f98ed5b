import type { Listing, Page } from "../../core/core.ts";
import { invalidFields } from "../../errors.ts";
import type { PageRequest } from "../loaders.ts";
import type { CostExtensions } from "../operation-limits.ts";
import { builder } from "./builder.ts";

const maxPage = 100;
const defaultPage = 20;

type Edge<Node> = Pick<Listing<Node>["edges"][number], "cursor" | "node">;
type Connection<Node> = Page<Edge<Node>>;

const PageInfo = builder.objectRef<Connection<unknown>>("PageInfo").implement({
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
    startCursor: t.string({
      description: "Cursor of the first edge. Null when there is none.",
      resolve: ({ edges }) => edges.at(0)?.cursor,
    }),
    endCursor: t.string({
      description: "Cursor of the last edge: give it as `after` to see the next page.",
      resolve: ({ edges, endCursor }) => endCursor ?? edges.at(-1)?.cursor,
    }),
  }),
});

/** A defined object type. */
export type ObjectType<Node extends object> = ReturnType<
  ReturnType<typeof builder.objectRef<Node>>["implement"]
>;

/**
 * Defines the type of a page of these nodes, and that of its edges.
 * @param all what it is a list of. @param one what one of them is
 */
export function connectionType<Node extends object>(
  node: ObjectType<Node>,
  all: string,
  one: string,
) {
  const { name } = node;
  const Edge = builder.objectRef<Edge<Node>>(`${name}Edge`).implement({
    description: `${one}, and its place in the list.`,
    fields: (t) => ({
      cursor: t.exposeString("cursor", {
        description:
          "Its place in this list, good for `after` in the same order. Watches take `node.cursor` " +
          "instead.",
        nullable: false,
      }),
      node: t.field({
        description: `${one}.`,
        type: node,
        nullable: false,
        resolve: (edge) => edge.node as never,
      }),
    }),
  });
  const Connection = builder.objectRef<Connection<Node>>(`${name}Connection`).implement({
    description: `A page of ${all}.`,
    fields: (t) => ({
      edges: t.field({
        description:
          "In the order that was asked for. A page may have fewer than `first`, even none, while " +
          "`hasNextPage` says that there are more.",
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
        resolve: (connection) => connection,
      }),
    }),
  });
  return { Connection, Edge };
}

/** The length of a page, as `CostExtensions` takes it. */
export const pageLength = { argument: "first", byDefault: defaultPage } as const;

type ArgBuilder = Parameters<Parameters<typeof builder.queryField>[1]>[0]["arg"];

export function firstArg(arg: ArgBuilder) {
  return arg.int({
    description: `How many at most, 1 to ${maxPage}.`,
    defaultValue: defaultPage,
  });
}

/** @param newestFirst describes what the list begins with */
export function pageArgs(arg: ArgBuilder, newestFirst: string) {
  return {
    first: firstArg(arg),
    after: arg.string({
      description:
        "Go on behind this place: `pageInfo.endCursor` of the page before, with the same " +
        "`newestFirst`.",
    }),
    newestFirst: arg.boolean({ description: newestFirst, defaultValue: false }),
  };
}

/** @throws GatewayError INVALID_ARGUMENT */
export function pageOf(args: {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly newestFirst?: boolean | null | undefined;
}): PageRequest {
  const { first, after, newestFirst } = args;
  const size = first ?? defaultPage;
  if (size < 1 || size > maxPage) {
    throw invalidFields([{ path: "first", message: `must be 1 to ${maxPage}` }]);
  }
  return { pageSize: size, pageToken: after ?? "", newestFirst: newestFirst ?? false };
}

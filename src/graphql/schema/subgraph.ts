import {
  extendSchema,
  type GraphQLFieldMap,
  type GraphQLObjectType,
  type GraphQLSchema,
  type GraphQLUnionType,
  lexicographicSortSchema,
  parse,
  printSchema,
} from "graphql";
import { pickAccount } from "../../auth/account.ts";
import { invalidFields } from "../../errors.ts";
import type { Payment } from "../../gen/payments/v1/payment_pb.ts";
import type { Payout } from "../../gen/payments/v1/payout_pb.ts";
import { type KindName, kindNames } from "../../model/kinds.ts";
import type { Context } from "../context.ts";
import { names, orNull } from "../loaders.ts";
import type { CostExtensions } from "../operation-limits.ts";
import { schema } from "./schema.ts";

/** The types that other subgraphs refer to by their keys, each read by the query field of its kind. */
const entities: ReadonlyMap<unknown, KindName> = new Map(
  kindNames.map((kind) => [names[kind].type, kind]),
);
const entityNames = [...entities.keys()] as readonly string[];

/** The schema of other callers, and the fields of the keys. */
function keyed(): GraphQLSchema {
  const keys = entityNames.map(
    (name) => `extend type ${name} {
    "The merchant account that it belongs to: with several accounts a part of its key in a supergraph."
    merchantAccount: String!
  }`,
  );
  return extendSchema(schema, parse(keys.join("\n")));
}

const queries = `
  "A reference to an entity: \`__typename\` and the fields of its key."
  scalar _Any

  "What other subgraphs may refer to."
  union _Entity = ${entityNames.join(" | ")}

  "This subgraph."
  type _Service {
    "Its schema, for composition. That of a gateway with one merchant account is the file \`schema.subgraph.graphql\`."
    sdl: String!
  }

  extend type Query {
    "What a supergraph is composed of. Part of introspection: off where that is off."
    _service: _Service!

    "The entities that a router refers to, in that order, each as \`payment\` or \`payout\` reads it: null if it is unknown, and with an error of its own if it cannot be read."
    _entities(
      "Each counts as the query field of its kind does."
      representations: [_Any!]!
    ): [_Entity]!
  }
`;

/** Apollo's composition knows `@oneOf` only if it is declared. */
const head = `\
extend schema @link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key", "@shareable"])

directive @oneOf on INPUT_OBJECT
`;

/**
 * The schema as other subgraphs see it, in federation 2. `schema.subgraph.graphql` has that of a
 * gateway with one merchant account.
 * @param inAccount whether an externalId belongs to one of several accounts: then it is half a key
 */
export function printSubgraph(inAccount = false): string {
  const key = `@key(fields: "${inAccount ? "merchantAccount " : ""}externalId")`;
  const types = printSchema(lexicographicSortSchema(keyed()))
    .replace(new RegExp(`^type (${entityNames.join("|")}) \\{$`, "gm"), `type $1 ${key} {`)
    // Relay's type has the same fields in every subgraph.
    .replace(/^type PageInfo \{$/m, "type PageInfo @shareable {");
  return `${head}\n${types}\n`;
}

/**
 * The schema for a federation router, which also resolves entities.
 * @param accounts names of the merchant accounts
 */
export function createSubgraphSchema(accounts: ReadonlySet<string>): GraphQLSchema {
  const subgraph = extendSchema(keyed(), parse(queries));
  const { _service, _entities } = fieldsOf(subgraph, "Query");
  let sdl: string | undefined;
  _service!.resolve = () => {
    sdl ??= printSubgraph(accounts.size > 1);
    return { sdl };
  };
  _entities!.extensions = {
    cost: costOfEntities,
    listSize: { argument: "representations", byDefault: 1 },
  } satisfies CostExtensions;
  _entities!.resolve = (_, args, context) => entitiesOf(args.representations, context, accounts);
  (subgraph.getType("_Entity") as GraphQLUnionType).resolveType = ({ $typeName }) =>
    $typeName.slice($typeName.lastIndexOf(".") + 1);
  for (const name of entityNames) {
    fieldsOf(subgraph, name).merchantAccount!.resolve = (entity, _, { loaders }) =>
      loaders.of(entity).account;
  }
  return subgraph;
}

function fieldsOf(subgraph: GraphQLSchema, name: string): GraphQLFieldMap<never, Context> {
  return (subgraph.getType(name) as GraphQLObjectType<never, Context>).getFields();
}

function costOfEntities(representations: unknown): number {
  const reads = schema.getQueryType()!.getFields();
  return [representations].flat().reduce<number>((sum, one) => {
    const kind = entities.get((one as { __typename?: unknown } | null)?.__typename);
    return sum + (kind ? (reads[kind]!.extensions as { cost: number }).cost : 1);
  }, 0);
}

function entitiesOf(
  representations: readonly unknown[],
  context: Context,
  accounts: ReadonlySet<string>,
): Promise<Payment | Payout | null>[] {
  const { call, operation } = context;
  return representations.map(async (representation, index) => {
    const { kind, externalId, account } = keyOf(representation, index, accounts);
    let { loaders } = context;
    if (account !== undefined && account !== call.caller.account) {
      // Credentials are verified once for each account that exists, however many names are sent.
      pickAccount(accounts, undefined, account, false);
      loaders = await loaders.in(account, async () => ({
        ...call,
        caller: await operation.request.authenticate(account),
      }));
    }
    return orNull(loaders.known(kind, externalId));
  });
}

/** Reads a representation. @throws GatewayError INVALID_ARGUMENT that names its wrong field */
function keyOf(representation: unknown, index: number, accounts: ReadonlySet<string>) {
  const refused = (path: string, message: string) =>
    invalidFields([{ path: `representations[${index}]${path}`, message }]);
  const { __typename, externalId, merchantAccount } = representation as Record<string, unknown>;
  const kind = entities.get(__typename);
  if (!kind) throw refused(".__typename", `must be ${entityNames.join(" or ")}`);
  if (!isText(externalId)) throw refused(".externalId", "must be a text that is not empty");
  if (merchantAccount === undefined && accounts.size === 1) return { kind, externalId };
  if (isText(merchantAccount)) return { kind, externalId, account: merchantAccount };
  const why =
    merchantAccount === undefined ? "is required: there are several accounts" : "must be a text";
  throw refused(".merchantAccount", why);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

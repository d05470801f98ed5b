import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ExecutionResult,
  execute,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
  getOperationAST,
  getVariableValues,
  isListType,
  isNonNullType,
  isObjectType,
  parse,
  validate,
} from "graphql";
import { compileOperation } from "../../src/graphql/compiled-operation.ts";
import { schema as servedSchema } from "../../src/graphql/schema/schema.ts";
import { randomOf } from "../random.ts";
import { valuesOf } from "../values-of.ts";

/** Context of one run of an operation. With the same seed, the resolvers behave the same. */
interface World {
  readonly seed: number;
  readonly log: string[];
  /** Its promises settle in the order of their creation, one in each turn of the event loop. */
  readonly later: <T>(settle: () => T) => Promise<T>;
}

function worldOf(seed: number): World {
  const waiting: (() => void)[] = [];
  const turn = () => {
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(turn);
  };
  return {
    seed,
    log: [],
    later: (settle) =>
      new Promise((resolve, reject) => {
        if (waiting.length === 0) setImmediate(turn);
        waiting.push(() => {
          try {
            resolve(settle());
          } catch (error) {
            reject(error);
          }
        });
      }),
  };
}

interface Source {
  readonly depth: number;
  readonly at: string;
}

/** Gives a value, null or an error, now or later, as its path in the result and the seed decide. */
function behave(
  source: Source | undefined,
  args: object,
  world: World,
  name: string,
  type: GraphQLOutputType,
) {
  const at = `${source?.at ?? ""}/${name}${JSON.stringify(args)}`;
  world.log.push(at);
  let hash = world.seed;
  for (const char of at) hash = (Math.imul(hash, 31) + char.charCodeAt(0)) >>> 0;
  const below = randomOf(hash);
  below(2);
  const settle = (): unknown => {
    const kind = below(12);
    if (kind === 0) throw new Error(`failed at ${at}`);
    if (kind === 1) return new Error(`returned at ${at}`);
    if (kind === 2) return null;
    if (kind === 3) return undefined;
    return anyOf(type, { depth: (source?.depth ?? 0) + 1, at });
  };
  const valueOfItem = (type: GraphQLOutputType, source: Source): unknown => {
    const kind = below(10);
    if (kind === 0) return null;
    if (kind === 1) return new Error(`item at ${source.at}`);
    const value = anyOf(type, source);
    return kind < 4 ? world.later(() => value) : value;
  };
  const anyOf = (type: GraphQLOutputType, source: Source): unknown => {
    if (isNonNullType(type)) return anyOf(type.ofType, source);
    if (isListType(type)) {
      if (below(15) === 0) return "no list";
      const { ofType } = type;
      return Array.from({ length: below(4) }, (_, index) =>
        valueOfItem(ofType, { ...source, at: `${source.at}[${index}]` }),
      );
    }
    if (type === GraphQLInt) return below(8) === 0 ? "no number" : below(100);
    return type === GraphQLString ? `text of ${at}` : source;
  };
  return below(3) === 0 ? world.later(settle) : settle();
}

function fieldOf(type: GraphQLOutputType, name: string) {
  return {
    type,
    args: { n: { type: GraphQLInt, defaultValue: 1 }, text: { type: GraphQLString } },
    resolve: (source: unknown, args: object, world: unknown) =>
      behave(source as Source | undefined, args, world as World, name, type),
  };
}

const itemType: GraphQLObjectType = new GraphQLObjectType({
  name: "Item",
  fields: () => fields,
});
const otherType = new GraphQLObjectType({ name: "Other", fields: () => fields });
const anyType = new GraphQLUnionType({
  name: "Any",
  types: [itemType, otherType],
  resolveType: (source: Source) => (source.at.length % 2 ? "Item" : "Other"),
});
const types: Record<string, GraphQLOutputType> = {
  text: GraphQLString,
  sure: new GraphQLNonNull(GraphQLString),
  number: GraphQLInt,
  item: itemType,
  other: otherType,
  any: anyType,
  sureItem: new GraphQLNonNull(itemType),
  texts: new GraphQLList(GraphQLString),
  items: new GraphQLList(new GraphQLNonNull(itemType)),
  sureAny: new GraphQLNonNull(new GraphQLList(anyType)),
};
const fields = Object.fromEntries(
  Object.entries(types).map(([name, type]) => [name, fieldOf(type, name)]),
);
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: "Query", fields }),
  mutation: new GraphQLObjectType({ name: "Mutation", fields }),
});

const fragments = `
  fragment A on Item { text sure @skip(if: $a) other: sureItem { number } ...B @include(if: $b) }
  fragment B on Item { text items { text __typename } }`;

function selectionOf(below: (n: number) => number, depth: number, isUnion: boolean): string {
  const parts: string[] = [];
  for (let count = 1 + below(4); count > 0; count--) {
    const alias = below(4) === 0 ? `x${below(3)}: ` : "";
    const args = ["", "", "(n: 2)", "(n: $n)", '(text: "a", n: $n)', "(text: $text)"][below(6)];
    const names = Object.keys(types).slice(0, depth > 2 ? 3 : undefined);
    const name = names[below(names.length)] ?? "text";
    const isObject = !["text", "sure", "number", "texts"].includes(name);
    const inner = isObject
      ? ` ${selectionOf(below, depth + 1, name === "any" || name === "sureAny")}`
      : "";
    const kind = below(8);
    const only = ["", "", "", " @skip(if: $a)", " @include(if: $b)", " @include(if: true)"];
    const directive = only[below(only.length)] ?? "";
    if (isUnion || kind === 0) {
      const on = below(2) === 0 ? "Item" : "Other";
      if (isUnion)
        parts.push(
          kind === 1
            ? `...A${directive}`
            : `... on ${on}${directive} { ${alias}${name}${args}${inner} }`,
        );
    } else if (kind === 1) parts.push(`__typename${directive}`);
    else parts.push(`${alias}${name}${args}${directive}${inner}`);
  }
  return `{ ${parts.join(" ") || "__typename"} }`;
}

/** The first operation of a text, compiled. */
function compiled(text: string, onFields?: (count: number) => void) {
  const document = parse(text);
  const operation = getOperationAST(document);
  assert.ok(operation);
  const { execute } = compileOperation(schema, document, operation, onFields);
  return (variables: Record<string, unknown>, world: World, source?: unknown) => {
    const definitions = operation.variableDefinitions ?? [];
    const { variableValues } = getVariableValues(schema, definitions, variables);
    assert.ok(variableValues);
    return execute(variableValues, world, source);
  };
}

/** A result as a client sees it. */
const shownOf = (result: ExecutionResult) => JSON.parse(JSON.stringify(result));

test("a compiled operation returns what GraphQL.js returns: values, nulls, errors and their order", async () => {
  const below = randomOf(15);
  let compared = 0;
  let failed = 0;
  let whole = 0;
  for (let round = 0; round < 6_000 && compared < 1_350; round++) {
    const operation = below(4) === 0 ? "mutation" : "query";
    const variables = "$n: Int, $text: String, $a: Boolean = false, $b: Boolean!";
    const text = `${operation} Q(${variables}) ${selectionOf(below, 0, false)} ${fragments}`;
    const document = parse(text);
    const rules = validate(schema, document);
    if (rules.some(({ message }) => !/never used/.test(message))) continue;
    const run = compiled(text);
    for (const variableValues of [
      { n: 5, text: "t", b: true },
      { n: null, a: true, b: false },
      { a: null, b: true },
    ]) {
      const seed = below(1_000_000);
      const [theirs, ours] = [worldOf(seed), worldOf(seed)];
      const expected = await execute({ schema, document, variableValues, contextValue: theirs });
      const result = await run(variableValues, ours);
      assert.deepEqual(shownOf(result), shownOf(expected), `${text} ${seed}`);
      if (operation === "mutation") assert.deepEqual(ours.log, theirs.log, "one after another");
      compared += 1;
      if (expected.errors) failed += 1;
      else whole += 1;
    }
  }
  assert.ok(compared > 500 && failed > 200 && whole > 50, `${compared} ${failed} ${whole}`);
});

test("no type of the schema asks its objects what they are: this is not compiled", () => {
  const types = Object.values(servedSchema.getTypeMap()).filter(isObjectType);
  assert.ok(types.length > 40, `${types.length}`);
  assert.deepEqual(
    valuesOf(
      types.filter(({ isTypeOf }) => isTypeOf),
      "name",
    ),
    [],
  );
});

test("only what is shown is compiled, however fragments multiply the fields", async () => {
  const levels = Array.from({ length: 30 }, (_, level) => {
    const inner = level === 29 ? "text" : `...F${level + 1}`;
    return `fragment F${level} on Item { a: item { ${inner} } b: item { ${inner} } }`;
  });
  let fields = 0;
  const run = compiled(`{ item { ...F0 } } ${levels.join(" ")}`, (count) => {
    fields += count;
  });
  for (let seed = 0; seed < 20; seed++) await run({}, worldOf(seed));
  assert.ok(fields > 1 && fields < 3_000, `${fields}`);
});

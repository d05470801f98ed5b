import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { codegen } from "@graphql-codegen/core";
import * as typedDocumentNode from "@graphql-codegen/typed-document-node";
import * as typescriptOperations from "@graphql-codegen/typescript-operations";
import {
  buildSchema,
  type DocumentNode,
  getNamedType,
  isObjectType,
  isScalarType,
  parse,
  specifiedScalarTypes,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from "graphql";
import { apolloCache, graphcacheKeys, relayDataId } from "../../clients/graphql/src/cache.ts";
import { codeBlocks, root } from "../docs/markdown.ts";

const text = readFileSync(join(root, "schema.graphql"), "utf8");
const schema = buildSchema(text);
const documents = globSync("clients/graphql/documents/*.graphql", { cwd: root })
  .sort()
  .map((location) => ({ location, document: parse(readFileSync(join(root, location), "utf8")) }));
const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith("__"));

describe("the policies for caches", () => {
  it("have the key of a payment and a payout in every document that reads one", () => {
    const all: DocumentNode = {
      kind: documents[0]!.document.kind,
      definitions: documents.flatMap(({ document }) => document.definitions),
    };
    assert.deepEqual(withoutKey(all), []);
    assert.deepEqual(withoutKey(parse('{ payment(externalId: "e") { state } }')), ["Payment"]);
  });

  it("say of each type with an id whether that is its key", () => {
    const withId = types
      .filter((type) => isObjectType(type) && (type.getFields().id ?? type.getFields()._id))
      .map(({ name }) => name);
    for (const name of withId) assert.ok(name in apolloCache.typePolicies, name);
  });

  it("give a key to a payment and a payout, and to nothing else", () => {
    const record = { externalId: "order-1", id: "1" };
    const keyed = ["Payment", "Payout"];
    const objects = types.filter(isObjectType).map(({ name }) => name);
    assert.deepEqual(
      objects.filter((name) => graphcacheKeys[name]?.(record) !== null),
      keyed,
    );
    assert.deepEqual(
      objects.filter((name) => relayDataId(record, name) !== undefined),
      keyed,
    );
    assert.deepEqual(
      Object.entries(apolloCache.typePolicies).flatMap(([name, { keyFields }]) =>
        keyFields ? [name] : [],
      ),
      keyed,
    );
  });
});

describe("the configuration of the code generator in the README", () => {
  it("writes our documents' types, and knows every scalar", async () => {
    const [block] = (await codeBlocks("clients/graphql/README.md")).filter(
      ({ lang, text }) => lang === "js" && text.includes("scalars"),
    );
    const source = `data:text/javascript,${encodeURIComponent(block?.text ?? "")}`;
    const { config } = (await import(source)).default.generates["src/documents.ts"];
    const own = types.filter(
      (type) => isScalarType(type) && !specifiedScalarTypes.some(({ name }) => name === type.name),
    );
    assert.deepEqual(Object.keys(config.scalars).sort(), own.map(({ name }) => name).sort());
    const output = await codegen({
      filename: "documents.ts",
      schema: parse(text),
      schemaAst: schema,
      documents,
      config,
      plugins: [{ typescriptOperations: {} }, { typedDocumentNode: {} }],
      pluginMap: { typescriptOperations, typedDocumentNode },
    });
    assert.equal(output, readFileSync(join(root, "clients/graphql/src/documents.ts"), "utf8"));
  });
});

/** Types of the selections of a payment or payout that lack its key, fragments included. */
function withoutKey(document: DocumentNode): string[] {
  const found: string[] = [];
  const info = new TypeInfo(schema);
  const fragments = new Map(
    document.definitions.flatMap((one) =>
      one.kind === "FragmentDefinition" ? [[one.name.value, one.selectionSet] as const] : [],
    ),
  );
  type Selections = NonNullable<ReturnType<typeof fragments.get>>;
  const selects = (set: Selections): boolean =>
    set.selections.some((one) => {
      if (one.kind === "Field") return one.name.value === "externalId";
      if (one.kind === "InlineFragment") return selects(one.selectionSet);
      const fragment = fragments.get(one.name.value);
      return fragment !== undefined && selects(fragment);
    });
  visit(
    document,
    visitWithTypeInfo(info, {
      Field(node) {
        const { name } = getNamedType(info.getType()) ?? {};
        if ((name === "Payment" || name === "Payout") && !selects(node.selectionSet!))
          found.push(name);
      },
      FragmentDefinition(node) {
        const { value } = node.typeCondition.name;
        if ((value === "Payment" || value === "Payout") && !selects(node.selectionSet))
          found.push(value);
      },
    }),
  );
  return found;
}

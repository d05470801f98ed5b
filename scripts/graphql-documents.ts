/**
 * Writes clients/graphql/src/documents.ts: the frontends' documents with the types of their
 * variables and results, as `TypedDocumentNode`s, from which any GraphQL client infers types. A
 * frontend that uses GraphQL Code Generator gets the same from `typescript-operations` and
 * `typed-document-node`. Also writes clients/graphql/src/schema-types.ts, with which a cache tells
 * which types a fragment on an interface or a union is about.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { codegen } from "@graphql-codegen/core";
import * as typedDocumentNode from "@graphql-codegen/typed-document-node";
import * as typescriptOperations from "@graphql-codegen/typescript-operations";
import { buildSchema, isAbstractType, isObjectType, parse } from "graphql";

const text = readFileSync("schema.graphql", "utf8");
const schema = buildSchema(text);
const scalar = { input: "string", output: "string" };
const config = {
  // All of them are strings in JSON, amounts included; BigInt may also be a number.
  scalars: {
    BigInt: { input: "number | string", output: "number | string" },
    DateTime: scalar,
    Decimal: scalar,
    EmailAddress: scalar,
    IPv4: scalar,
    URL: scalar,
    UUID: scalar,
  },
  enumsAsTypes: true,
  onlyOperationTypes: true,
  skipTypename: true,
  useTypeImports: true,
};
const output = await codegen({
  filename: "documents.ts",
  schema: parse(text),
  schemaAst: schema,
  documents: globSync("clients/graphql/documents/*.graphql")
    .sort()
    .map((location) => ({ location, document: parse(readFileSync(location, "utf8")) })),
  config,
  plugins: [{ typescriptOperations: {} }, { typedDocumentNode: {} }],
  pluginMap: { typescriptOperations, typedDocumentNode },
});
writeFileSync("clients/graphql/src/documents.ts", output);

const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith("__"));
const possibleTypes = types
  .filter(isAbstractType)
  .map((type) => [type.name, schema.getPossibleTypes(type).map(({ name }) => name)]);
const objectTypes = types.filter(isObjectType).map(({ name }) => name);
writeFileSync(
  "clients/graphql/src/schema-types.ts",
  `// Generated from schema.graphql.

/** The types of each interface and union. */
export const possibleTypes: Record<string, string[]> = ${JSON.stringify(Object.fromEntries(possibleTypes), null, 2)};

export const objectTypes: readonly string[] = ${JSON.stringify(objectTypes, null, 2)};
`,
);

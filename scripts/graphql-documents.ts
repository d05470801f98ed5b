/**
 * Writes clients/graphql/src/documents.ts: the frontends' documents with the types of their
 * variables and results, as `TypedDocumentNode`s, from which any GraphQL client infers types. A
 * frontend that uses GraphQL Code Generator gets the same from `typescript-operations` and
 * `typed-document-node`.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { codegen } from "@graphql-codegen/core";
import * as typedDocumentNode from "@graphql-codegen/typed-document-node";
import * as typescriptOperations from "@graphql-codegen/typescript-operations";
import { buildSchema, parse } from "graphql";

const text = readFileSync("schema.graphql", "utf8");
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
  schemaAst: buildSchema(text),
  documents: globSync("clients/graphql/documents/*.graphql")
    .sort()
    .map((location) => ({ location, document: parse(readFileSync(location, "utf8")) })),
  config,
  plugins: [{ typescriptOperations: {} }, { typedDocumentNode: {} }],
  pluginMap: { typescriptOperations, typedDocumentNode },
});
writeFileSync("clients/graphql/src/documents.ts", output);

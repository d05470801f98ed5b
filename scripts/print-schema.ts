/** Writes the GraphQL contract from the schema itself: for callers, and for supergraphs. */
import { writeFileSync } from "node:fs";
import { lexicographicSortSchema, printSchema } from "graphql";
import { schema } from "../src/graphql/schema/schema.ts";
import { printSubgraph } from "../src/graphql/schema/subgraph.ts";

writeFileSync("schema.graphql", `${printSchema(lexicographicSortSchema(schema))}\n`);
writeFileSync("schema.subgraph.graphql", printSubgraph());

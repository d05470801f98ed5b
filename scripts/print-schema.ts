/** Writes schema.graphql, the GraphQL contract, from the schema itself. */
import { writeFileSync } from "node:fs";
import { lexicographicSortSchema, printSchema } from "graphql";
import { schema } from "../src/graphql/schema/schema.ts";

writeFileSync("schema.graphql", `${printSchema(lexicographicSortSchema(schema))}\n`);

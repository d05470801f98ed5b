import type { DescEnum, DescField, DescMessage, DescOneof } from "@bufbuild/protobuf";
import texts from "../../gen/graphql-descriptions.json" with { type: "json" };

/** The proto's comment on a declaration, adapted to GraphQL by scripts/graphql-descriptions.ts. */
export function describe(
  desc: DescMessage | DescField | DescOneof | DescEnum | DescEnum["values"][number],
): string {
  const key =
    desc.kind === "field" || desc.kind === "oneof" ? `${desc.parent.name}.${desc.name}` : desc.name;
  const text = (texts as Readonly<Record<string, string>>)[key];
  if (text === undefined) throw new Error(`no description of ${key}: run npm run generate`);
  return text;
}

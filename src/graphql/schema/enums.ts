import type { DescEnum } from "@bufbuild/protobuf";
import { oncePer } from "../../collections/once-per.ts";
import { builder } from "./builder.ts";
import { describe } from "./descriptions.ts";

/**
 * The GraphQL enum of a proto enum. Value names lack the enum's prefix. The zero value is left out:
 * it is null in responses.
 */
export const enumRef = oncePer((desc: DescEnum) => {
  const prefix = desc.sharedPrefix?.toUpperCase() ?? "";
  return builder.enumType(desc.name, {
    description: describe(desc),
    values: Object.fromEntries(
      desc.values
        .filter((value) => value.number !== 0)
        .map((value) => [
          value.name.slice(prefix.length),
          { value: value.number, description: describe(value) },
        ]),
    ),
  });
});

/**
 * An enum's value in a response. The zero value and numbers outside this contract become null,
 * since GraphQL would fail the field for them.
 */
export function knownValue(desc: DescEnum, value: unknown): number | null {
  return typeof value === "number" && value !== 0 && desc.value[value] ? value : null;
}

import { fromJson } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { GraphQLError, Kind, type ValueNode } from "graphql";
import { isOfCalendar, writeInstant } from "../../model/instant.ts";
import { builder } from "./builder.ts";

interface Scalar {
  /**
   * Reads a value, or the text of a literal. Its errors name no value, which may be a secret.
   * Default: takes any text.
   */
  readonly parse?: (value: unknown) => unknown;
  /** Literals whose text is taken. Default: strings. */
  readonly literals?: readonly Kind[];
  /** Default: as text. */
  readonly serialize?: (value: unknown) => unknown;
}

const textOf = (name: string) => (value: unknown) => {
  if (typeof value === "string") return value;
  throw new GraphQLError(`${name} takes a string`);
};

function scalar(
  name: "UUID" | "URL" | "EmailAddress" | "IPv4" | "Decimal" | "DateTime",
  description: string,
  { parse = textOf(name), literals = [Kind.STRING], serialize = String }: Scalar = {},
): void {
  const parseLiteral = (node: ValueNode) => {
    try {
      return parse("value" in node && literals.includes(node.kind) ? node.value : undefined);
    } catch (error) {
      // Where the literal stands, GraphQL.js leaves to a scalar.
      throw new GraphQLError((error as Error).message, { nodes: node });
    }
  };
  builder.scalarType(name, { description, serialize, parseValue: parse, parseLiteral } as never);
}

// These accept and return any text. Input formats are checked by the rules in the proto, so that one
// InvalidInputError names all wrong fields. Output is not checked: an odd e-mail address from the
// payments service must not fail a response.
const ofService = "In an answer: the payments service's own text.";
scalar("UUID", `A UUID, such as \`f47ac10b-58cc-4372-a567-0e02b2c3d479\`. ${ofService}`);
scalar("URL", `An absolute URL. ${ofService}`);
scalar("EmailAddress", `An e-mail address. ${ofService}`);
scalar("IPv4", `An IPv4 address in dotted form. ${ofService}`);

scalar(
  "Decimal",
  'An exact decimal number as text, such as `"10.10"`: up to 15 digits before the point and 6 ' +
    "behind it, 15 significant ones in all. Send a string; a whole number, and a number written " +
    "in the query itself, are taken too. A variable that is a JSON number with a fraction is " +
    "refused, since its text is lost. In an answer: the payments service's own digits.",
  {
    literals: [Kind.STRING, Kind.INT, Kind.FLOAT],
    parse(value) {
      if (typeof value === "string") return value;
      if (Number.isSafeInteger(value)) return String(value);
      throw new GraphQLError(
        'Decimal takes a string, such as "10.10": a JSON number does not keep its digits',
      );
    },
  },
);

scalar("DateTime", "An instant in RFC 3339 form, in UTC, such as `2026-01-31T12:00:00.250Z`.", {
  serialize: (instant) => writeInstant(instant as Timestamp),
  parse(value) {
    try {
      if (typeof value === "string" && isOfCalendar(value)) return fromJson(TimestampSchema, value);
    } catch {
      // Said below, without the value.
    }
    throw new GraphQLError(
      "DateTime takes an instant in RFC 3339 form, such as 2026-01-31T12:00:00.250Z",
    );
  },
});

builder.scalarType("BigInt", {
  description:
    "A whole number of up to 64 bits: a JSON number between -(2^53 - 1) and 2^53 - 1, beyond that " +
    "a string of its digits.",
  serialize: (value) => (Number.isSafeInteger(Number(value)) ? Number(value) : String(value)),
  parseValue() {
    throw new GraphQLError("BigInt appears in answers only");
  },
});

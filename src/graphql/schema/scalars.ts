import { fromJson } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { GraphQLError, Kind, type ValueNode } from "graphql";
import { isOfCalendar, writeInstant } from "../../model/instant.ts";
import { builder } from "./builder.ts";

/**
 * Defines a scalar that accepts and returns any text. Input formats are checked by the rules in the
 * proto, so that one InvalidInputError names all wrong fields. Output is not checked: an odd e-mail
 * address from the payments service must not fail a response.
 */
function textScalar(name: "UUID" | "URL" | "EmailAddress" | "IPv4", description: string): void {
  builder.scalarType(name, {
    description: `${description} In an answer: the payments service's own text.`,
    serialize: String,
    parseValue: (value) => textOf(name, value),
    parseLiteral: located((node) => textOf(name, stringOf(node))),
  });
}

textScalar("UUID", "A UUID, such as `f47ac10b-58cc-4372-a567-0e02b2c3d479`.");
textScalar("URL", "An absolute URL.");
textScalar("EmailAddress", "An e-mail address.");
textScalar("IPv4", "An IPv4 address in dotted form.");

builder.scalarType("Decimal", {
  description:
    'An exact decimal number as text, such as `"10.10"`: up to 15 digits before the point and 6 ' +
    "behind it, 15 significant ones in all. Send a string; a whole number, and a number written " +
    "in the query itself, are taken too. A variable that is a JSON number with a fraction is " +
    "refused, since its text is lost. In an answer: the payments service's own digits.",
  serialize: String,
  parseValue: decimalOfVariable,
  parseLiteral: located(decimalOfLiteral),
});

builder.scalarType("DateTime", {
  description: "An instant in RFC 3339 form, in UTC, such as `2026-01-31T12:00:00.250Z`.",
  serialize: (instant) => writeInstant(instant as Timestamp),
  parseValue: instantOf,
  parseLiteral: located((node) => instantOf(stringOf(node))),
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

/** Parses a value in a query: an error says where it stands, which GraphQL.js leaves to a scalar. */
function located<Value>(parse: (node: ValueNode) => Value): (node: ValueNode) => Value {
  return (node) => {
    try {
      return parse(node);
    } catch (error) {
      throw new GraphQLError((error as Error).message, { nodes: node });
    }
  };
}

function stringOf(node: ValueNode): string | undefined {
  return node.kind === Kind.STRING ? node.value : undefined;
}

// The errors below name no value: a value in the wrong place may be a secret.

function textOf(scalar: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw new GraphQLError(`${scalar} takes a string`);
}

function decimalOfVariable(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value);
  throw new GraphQLError(
    'Decimal takes a string, such as "10.10": a JSON number does not keep its digits',
  );
}

function decimalOfLiteral(node: ValueNode): string {
  if (node.kind === Kind.STRING || node.kind === Kind.INT || node.kind === Kind.FLOAT) {
    return node.value;
  }
  throw new GraphQLError('Decimal takes a string, such as "10.10"');
}

function instantOf(value: unknown): { seconds: bigint; nanos: number } {
  try {
    if (typeof value === "string" && isOfCalendar(value)) return fromJson(TimestampSchema, value);
  } catch {
    // Said below, without the value.
  }
  throw new GraphQLError(
    "DateTime takes an instant in RFC 3339 form, such as 2026-01-31T12:00:00.250Z",
  );
}

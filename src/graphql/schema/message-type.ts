import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescOneof,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { oncePer } from "../../collections/once-per.ts";
import texts from "../../gen/graphql-descriptions.json" with { type: "json" };
import { isSecret } from "../../secrets/secret-fields.ts";
import type { CostExtensions } from "../operation-limits.ts";
import { builder } from "./builder.ts";

type FieldName<Desc extends DescMessage> = Exclude<
  keyof MessageShape<Desc> & string,
  "$typeName" | "$unknown"
>;

export interface MessageTypeOptions<Desc extends DescMessage> {
  /** Default: the message's name. A type with another one is not that of the message's fields. */
  readonly name?: string;
  /** Default: the message's comment. */
  readonly description?: string;
  /** Fields that are never null though the proto cannot say so. */
  readonly always?: readonly FieldName<Desc>[];
  /** Fields that GraphQL does not show. */
  readonly omit?: readonly FieldName<Desc>[];
}

/**
 * Defines the GraphQL type of a proto message: every field under its camelCase name, with the
 * proto's comment. Absent fields and unspecified enum values are null.
 */
export function messageType<Desc extends DescMessage>(
  desc: Desc,
  options: MessageTypeOptions<Desc> = {},
) {
  const ref = builder.objectRef<MessageShape<Desc>>(options.name ?? desc.name);
  if (!options.name) refs.set(desc.typeName, ref);
  return ref.implement({
    description: options.description ?? describe(desc),
    fields: (t) => messageFields(t, desc, options),
  });
}

const refs = new Map<string, unknown>();

// biome-ignore lint/suspicious/noExplicitAny: Pothos infers fields from literals; these come from a descriptor, so their types end here
type Untyped = any;

/** The fields of a message, for types with others besides. Members of oneofs are left out. */
export function messageFields<Desc extends DescMessage>(
  t: Untyped,
  desc: Desc,
  options: MessageTypeOptions<Desc> = {},
): Record<string, Untyped> {
  const omit = new Set<string>(options.omit);
  return Object.fromEntries(
    desc.fields
      .filter((field) => !field.oneof && !omit.has(field.localName))
      .map((field) => [field.localName, messageField(t, field, options)]),
  );
}

function messageField<Desc extends DescMessage>(
  t: Untyped,
  field: DescField,
  { always = [] }: MessageTypeOptions<Desc>,
): Untyped {
  const name = field.localName as FieldName<Desc>;
  const options = {
    description: describe(field),
    nullable: !always.includes(name) && !isAlwaysSet(field),
    extensions: { secret: isSecret(field) } satisfies SecretExtensions,
  };
  switch (field.fieldKind) {
    case "enum": {
      const { enum: desc } = field;
      const resolve = (parent: Record<string, unknown>) => knownValue(desc, parent[name]);
      return t.field({ ...options, type: enumRef(desc), resolve });
    }
    case "message":
      return t.expose(name, { ...options, type: messageRef(field.message) });
    case "scalar":
      return t.expose(name, { ...options, type: formatOf(field) ?? scalarName(field) });
    case "list": {
      if (field.listKind !== "message") break;
      const cost = { listSize: expectedListSize } satisfies CostExtensions;
      const extensions = { ...options.extensions, ...cost };
      const type = [messageRef(field.message)];
      return t.expose(name, { ...options, nullable: false, extensions, type });
    }
  }
  throw new Error(`${field}: GraphQL has no type for ${field.fieldKind} fields of answers`);
}

/** Whether the proto marks a field as secret, as declared in its `extensions`. */
export interface SecretExtensions {
  readonly secret?: boolean;
}

/** How many members the cost of an operation counts for a list in a message. */
const expectedListSize = 2;

/** Proto3 scalars without presence always have a value. */
function isAlwaysSet(field: DescField): boolean {
  return field.fieldKind === "scalar" && !field.proto.proto3Optional;
}

/** The type of a message in another one, by default with all of its fields. */
function messageRef(desc: DescMessage): unknown {
  if (desc.typeName === TimestampSchema.typeName) return "DateTime";
  return refs.get(desc.typeName) ?? messageType(desc);
}

/** The scalar of a text that has a format, which the proto says of requests alone. */
function formatOf({ parent, localName }: DescField): string | undefined {
  return formats[`${parent.name}.${localName}`] ?? formats[localName];
}

const formats: Readonly<Partial<Record<string, string>>> = {
  amount: "Decimal",
  email: "EmailAddress",
  optionId: "UUID",
  originalAmount: "Decimal",
  payerAmount: "Decimal",
  payerOuterFee: "Decimal",
  "Payout.transactionId": "UUID",
  recipientAmount: "Decimal",
  rid: "UUID",
};

/** The GraphQL type of a scalar field whose text has no format. */
export function scalarName(field: DescField): string {
  const name = field.scalar && scalarNames[field.scalar];
  if (name === undefined) throw new Error(`no GraphQL type of ${field}`);
  return name;
}

const scalarNames: Readonly<Partial<Record<ScalarType, string>>> = {
  [ScalarType.STRING]: "String",
  [ScalarType.BOOL]: "Boolean",
  [ScalarType.INT32]: "Int",
  [ScalarType.INT64]: "BigInt",
};

/**
 * The GraphQL enum of a proto enum. Value names lack the enum's prefix. The zero value is left out:
 * it is null in responses.
 */
export const enumRef = oncePer((desc: DescEnum) => {
  return builder.enumType(desc.name, {
    description: describe(desc),
    values: Object.fromEntries(
      desc.values
        .filter((value) => value.number !== 0)
        .map((value) => [value.localName, { value: value.number, description: describe(value) }]),
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

/** The proto's comment on a declaration, adapted to GraphQL by scripts/graphql-descriptions.ts. */
export function describe(
  desc: DescMessage | DescField | DescOneof | DescMethod | DescEnum | DescEnum["values"][number],
): string {
  const isTop = desc.kind === "message" || desc.kind === "enum" || desc.kind === "enum_value";
  const key = isTop ? desc.name : `${desc.parent.name}.${desc.name}`;
  const text = (texts as Readonly<Record<string, string>>)[key];
  if (text === undefined) throw new Error(`no description of ${key}: run npm run generate`);
  return text;
}

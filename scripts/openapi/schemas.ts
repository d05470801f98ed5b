import {
  type DescEnum,
  type DescField,
  type DescMessage,
  getExtension,
  getOption,
  hasExtension,
  isFieldSet,
  ScalarType,
} from "@bufbuild/protobuf";
import type { GenExtension } from "@bufbuild/protobuf/codegenv2";
import { durationMs, FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
  type FieldRules,
  field as fieldRules,
  message as messageRules,
  oneof as oneofRules,
  predefined,
  type StringRules,
  StringRulesSchema,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { file_payments_v1_rules } from "../../src/gen/payments/v1/rules_pb.ts";

/** A JSON Schema (2020-12), or another part of an OpenAPI document. */
export type Schema = Readonly<Record<string, unknown>>;

/**
 * Makes the schemas of messages and enums in proto JSON, with their comments and rules. What a rule
 * says and a schema cannot stands in the description.
 */
export class Schemas {
  /** By name; filled by `ref`. */
  readonly all: Record<string, Schema> = {};
  readonly #comments: ReadonlyMap<string, string>;
  /** Messages of requests, which take no unknown fields. */
  readonly #inputs: ReadonlySet<DescMessage>;

  constructor(comments: ReadonlyMap<string, string>, requests: readonly DescMessage[]) {
    this.#comments = comments;
    this.#inputs = within(requests);
  }

  /** A reference to the schema of a message or an enum. */
  ref(desc: DescMessage | DescEnum): Schema {
    const { name } = desc;
    if (!(name in this.all)) {
      this.all[name] = {};
      this.all[name] = desc.kind === "enum" ? this.#enum(desc) : this.#message(desc);
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  #message(desc: DescMessage): Schema {
    const between = getOption(desc, messageRules).cel.map(({ id, message }) => {
      const path = id.split(".").slice(0, -1).map(jsonPath).join(".");
      return path ? `\`${path}\` ${message}.` : `${sentence(message)}.`;
    });
    const oneofs = desc.oneofs.filter(({ fields }) => fields.length > 1);
    const only = oneofs.map((oneof) => {
      const { required } = getOption(oneof, oneofRules);
      const names = oneof.fields.map(({ jsonName }) => `\`${jsonName}\``).join(", ");
      return `${required ? "Exactly" : "At most"} one of ${names}.`;
    });
    const required = desc.fields.filter((field) => getOption(field, fieldRules).required);
    return {
      type: "object",
      ...described(this.#comments.get(desc.name), [
        ...only,
        ...(between.length > 0 ? [`Refusals: ${between.join(" ")}`] : []),
      ]),
      properties: Object.fromEntries(
        desc.fields.map((field) => [field.jsonName, this.#field(field)]),
      ),
      ...(required.length > 0 && { required: required.map(({ jsonName }) => jsonName) }),
      ...(oneofs.length > 0 && { dependentSchemas: exclusions(oneofs) }),
      ...(this.#inputs.has(desc) && { additionalProperties: false }),
    };
  }

  #field(field: DescField): Schema {
    const rules = getOption(field, fieldRules);
    const comment = this.#comments.get(`${field.parent.name}.${field.name}`);
    const { schema, words } = this.#value(field, rules);
    return {
      ...schema,
      ...described(comment, words),
      ...(field.proto.options?.deprecated && { deprecated: true }),
      ...(field.proto.options?.debugRedact && { "x-secret": true }),
    };
  }

  #value(field: DescField, rules: FieldRules): Value {
    if (field.fieldKind === "list") {
      const list = rules.type.case === "repeated" ? rules.type.value : undefined;
      const { schema, words } = this.#single(field, list?.items);
      const bounds = {
        ...(list?.minItems && { minItems: Number(list.minItems) }),
        ...(list?.maxItems && { maxItems: Number(list.maxItems) }),
      };
      return { schema: { type: "array", items: schema, ...bounds }, words };
    }
    if (field.fieldKind === "map") {
      if (field.mapKind !== "scalar") throw new Error(`no schema of ${field}`);
      const additionalProperties = scalar(field.scalar);
      return { schema: { type: "object", additionalProperties }, words: [] };
    }
    return this.#single(field, rules);
  }

  #single(field: DescField, rules: FieldRules | undefined): Value {
    const type = rules?.type;
    if (field.enum) return { schema: this.ref(field.enum), words: [] };
    if (field.message) {
      if (type?.case !== "duration") return { schema: this.#json(field.message), words: [] };
      const seconds = [type.value.greaterThan.value, type.value.lessThan.value].map(
        (bound) => bound && `${durationMs(bound) / 1_000} s`,
      );
      return { schema: this.#json(field.message), words: [`${seconds.join(" to ")}.`] };
    }
    const schema = scalar(field.scalar);
    // Without presence, what is required must not be empty.
    const isFilled =
      rules?.required === true && field.presence === FeatureSet_FieldPresence.IMPLICIT;
    switch (type?.case) {
      case "string": {
        const { schema: form, words } = textForm(type.value);
        return { schema: { ...schema, ...(isFilled && { minLength: 1 }), ...form }, words };
      }
      case "int32": {
        const { greaterThan, lessThan } = type.value;
        const bounds = {
          ...(greaterThan.case === "gte" && { minimum: greaterThan.value }),
          ...(greaterThan.case === "gt" && { exclusiveMinimum: greaterThan.value }),
          ...(lessThan.case === "lte" && { maximum: lessThan.value }),
          ...(lessThan.case === "lt" && { exclusiveMaximum: lessThan.value }),
        };
        return { schema: { ...schema, ...bounds }, words: [] };
      }
      case undefined:
        return {
          schema: { ...schema, ...(isFilled && schema.type === "string" && { minLength: 1 }) },
          words: [],
        };
      default:
        throw new Error(`no schema of the rules of ${field}`);
    }
  }

  /** A message in proto JSON, which has forms of its own for some. */
  #json(desc: DescMessage): Schema {
    return wellKnown[desc.typeName] ?? this.ref(desc);
  }

  #enum(desc: DescEnum): Schema {
    // The unspecified value is never written, and no request has a use for it.
    const values = desc.values.filter(({ number }) => number !== 0);
    const meanings = values.map(
      ({ name }) => `- \`${name}\`: ${this.#comments.get(name)?.replaceAll("\n", " ")}`,
    );
    const description = [this.#comments.get(desc.name), meanings.join("\n")].join("\n\n");
    return { type: "string", description, enum: values.map(({ name }) => name) };
  }
}

interface Value {
  readonly schema: Schema;
  /** What the schema cannot say. */
  readonly words: readonly string[];
}

const wellKnown: Readonly<Record<string, Schema>> = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Duration": {
    type: "string",
    pattern: "^[0-9]+(\\.[0-9]{1,9})?s$",
    examples: ["15s"],
  },
};

function scalar(type: ScalarType | undefined): Schema {
  switch (type) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.INT32:
      return { type: "integer", format: "int32" };
    case ScalarType.INT64:
      // A number in JSON may lose digits beyond 2^53.
      return { type: "string", format: "int64", pattern: "^-?[0-9]+$" };
    default:
      throw new Error(`no schema of the scalar ${type}`);
  }
}

/** The rules of a text. A limit in bytes of UTF-8 is also one in characters. */
function textForm(rules: StringRules): Value {
  const bound = (name: "minLen" | "maxLen" | "maxBytes") =>
    isFieldSet(rules, StringRulesSchema.field[name]) ? Number(rules[name]) : undefined;
  const [minLength, maxBytes] = [bound("minLen"), bound("maxBytes")];
  const maxLength = bound("maxLen") ?? maxBytes;
  const { wellKnown } = rules;
  const own = extensions
    .filter((extension) => hasExtension(rules, extension) && getExtension(rules, extension))
    .flatMap((extension) => getOption(extension, predefined).cel);
  const expressions = own.map(({ expression }) => expression);
  const patterns = expressions.flatMap((expression) => patternIn(expression) ?? []);
  return {
    schema: {
      ...(minLength !== undefined && { minLength }),
      ...(maxLength !== undefined && { maxLength }),
      ...(rules.in.length > 0 && { enum: rules.in }),
      ...(wellKnown.value === true && { format: wellKnown.case }),
      ...(expressions.some((expression) => expression.includes("isUri")) && { format: "uri" }),
      ...(patterns.length > 0 && { pattern: patterns[0] }),
    },
    words: [
      ...own.map(({ message }) => `${sentence(message)}.`),
      ...(maxBytes === undefined ? [] : [`At most ${maxBytes} bytes in UTF-8.`]),
    ],
  };
}

const extensions = file_payments_v1_rules.extensions as GenExtension<StringRules, unknown>[];

/** The pattern that a text must match by a rule; undefined for one that JavaScript has not. */
function patternIn(expression: string): string | undefined {
  const found = /(?<!!)this\.matches\('((?:[^'\\]|\\.)*)'\)/.exec(expression)?.[1];
  return found?.includes("(?i)") ? undefined : found?.replace(/\\(.)/g, "$1");
}

/** That none of the others is set beside a member of a oneof. */
function exclusions(oneofs: DescMessage["oneofs"]): Schema {
  const members = oneofs.flatMap(({ fields }) => fields.map((member) => ({ member, fields })));
  return Object.fromEntries(
    members.map(({ member, fields }) => {
      const others = fields.filter((field) => field !== member);
      const properties = Object.fromEntries(others.map(({ jsonName }) => [jsonName, false]));
      return [member.jsonName, { properties }];
    }),
  );
}

function within(messages: readonly DescMessage[], found = new Set<DescMessage>()) {
  for (const message of messages) {
    if (found.has(message)) continue;
    found.add(message);
    within(
      message.fields.flatMap((field) => field.message ?? []),
      found,
    );
  }
  return found;
}

function described(comment: string | undefined, words: readonly string[]): Schema {
  const description = [comment, words.join(" ")].filter(Boolean).join("\n\n");
  return description === "" ? {} : { description };
}

function jsonPath(name: string): string {
  return name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

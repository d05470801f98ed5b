import {
  type DescField,
  type DescMessage,
  type DescOneof,
  getExtension,
  getOption,
  hasExtension,
} from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import {
  field as fieldRules,
  oneof as oneofRules,
  type StringRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { oncePer } from "../../collections/once-per.ts";
import { decimal, http_url, link } from "../../gen/payments/v1/rules_pb.ts";
import { isMoneyRequest } from "../../model/money-methods.ts";
import { builder } from "./builder.ts";
import { isHidden, nestsOneof } from "./input.ts";
import { describe, enumRef, scalarName } from "./message-type.ts";

/**
 * Defines the GraphQL input type of a message, and of all messages in it. Fields, their comments,
 * their formats and whether they are required come from the proto and its rules.
 */
export const inputType = oncePer(define);

type InputRef = ReturnType<typeof defineInput>;

/** The key of a call that moves money is no field of its request: RPC has a header for it. */
const idempotencyKey: InputField = {
  name: "idempotencyKey",
  type: "String",
  required: false,
  description:
    "Makes a repeat safe for 24 hours: the same key with the same input gets the first answer " +
    "again, with `idempotentReplayed: true` in the `extensions` of the result. 1 to 255 visible " +
    "ASCII characters. Over HTTP the header `Idempotency-Key` does the same; over WebSocket, and " +
    "behind a router, only this does. If both are given, they must be the same key.",
};

function define(desc: DescMessage): InputRef {
  const name = inputName(desc);
  const fields = desc.fields.filter((field) => !isHidden(field));
  if (!nestsOneof(desc)) {
    const all = fields.map(inputField);
    if (isMoneyRequest(desc)) all.push(idempotencyKey);
    return defineInput(name, desc, all, desc.oneofs.length > 0);
  }
  const oneofs = desc.oneofs.map((oneof): InputField => {
    const members = fields.filter((field) => field.oneof === oneof).map(inputField);
    const details = `${name.replace(/Input$/, "")}DetailsInput`;
    const type = defineInput(details, oneof, members, true);
    const { required } = getOption(oneof, oneofRules);
    return { name: oneof.localName, type, required, description: describe(oneof) };
  });
  const plain = fields.filter((field) => !field.oneof).map(inputField);
  return defineInput(name, desc, [...plain, ...oneofs]);
}

/** `CreatePaymentRequest` becomes `CreatePaymentInput`, `Card` becomes `CardInput`. */
function inputName(desc: DescMessage): string {
  if (desc.name === "CustomerIdentity") return "CustomerInput";
  return `${desc.name.replace(/(Request|Input)$/, "")}Input`;
}

/** Defines an input type. @param what its description, or whose comment describes it */
export function defineInput(
  name: string,
  what: string | DescMessage | DescOneof,
  fields: readonly InputField[],
  isOneOf = false,
) {
  return builder.inputType(name, {
    description: typeof what === "string" ? what : describe(what),
    isOneOf,
    fields: (t) =>
      Object.fromEntries(
        // Pothos infers inputs from literals; these come from a descriptor, so types end here.
        fields.map(({ name: field, ...options }) => [field, t.field(options as never)]),
      ),
  });
}

type InputField = ReturnType<typeof inputField>;

/** The field of an input type, as the proto has it. */
export function inputField(field: DescField) {
  return {
    name: field.localName,
    type: field.fieldKind === "list" ? [typeOf(field)] : typeOf(field),
    required: isRequired(field),
    description: describe(field),
  };
}

function typeOf(field: DescField): unknown {
  if (field.message?.typeName === TimestampSchema.typeName) return "DateTime";
  if (field.message) return inputType(field.message);
  return field.enum ? enumRef(field.enum) : scalarOf(field);
}

/** A customer is not required here: the caller's token may name it, which only the core checks. */
function isRequired(field: DescField): boolean {
  return getOption(field, fieldRules).required && field.message?.name !== "CustomerIdentity";
}

function scalarOf(field: DescField): string {
  // The type of the argument externalId, so that one variable serves both.
  if (field.name === "external_id") return "ID";
  const { type } = getOption(field, fieldRules);
  return type.case === "string" ? formatName(type.value) : scalarName(field);
}

function formatName(rules: StringRules): string {
  if (hasExtension(rules, decimal) && getExtension(rules, decimal)) return "Decimal";
  if (hasExtension(rules, http_url) || hasExtension(rules, link)) return "URL";
  return formats[rules.wellKnown.case ?? ""] ?? "String";
}

const formats: Readonly<Partial<Record<string, string>>> = {
  uuid: "UUID",
  email: "EmailAddress",
  ipv4: "IPv4",
};

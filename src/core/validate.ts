import {
  createRegistry,
  type DescField,
  type DescMessage,
  getOption,
  type MessageShape,
} from "@bufbuild/protobuf";
import { pathToString, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { createValidator, type Validator, type Violation } from "@bufbuild/protovalidate";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { oncePer } from "../collections/once-per.ts";
import { type FieldViolation, invalidFields } from "../errors.ts";
import { file_payments_v1_rules } from "../gen/payments/v1/rules_pb.ts";
import { surelyValid } from "../gen/rules.ts";

/** It compiles the rules of a type when it first words a refusal, in tens of milliseconds. */
let validator: Validator | undefined;

/**
 * Checks a request against the rules in the proto, for both edges alike.
 * @throws GatewayError INVALID_ARGUMENT with every refused field, but never with a refused value
 */
export function validate<Desc extends DescMessage>(
  schema: Desc,
  request: MessageShape<Desc>,
): void {
  if (surelyValid[schema.typeName]?.(request)) return;
  const large = tooLarge(reflect(schema, request));
  if (large.length > 0) throw invalidFields(large);
  validator ??= createValidator({ registry: createRegistry(file_payments_v1_rules) });
  const result = validator.validate(schema, request);
  if (result.kind === "valid") return;
  if (result.kind === "error") throw result.error;
  throw invalidFields(result.violations.map(fieldViolation));
}

/**
 * Fields with more items or bytes than their rules allow. These are checked first, since the time
 * of the other rules grows with the size of the input.
 */
function tooLarge(message: ReflectMessage, path = ""): FieldViolation[] {
  return message.fields.flatMap((field): FieldViolation[] => {
    if (!message.isSet(field)) return [];
    const here = `${path}${field.name}`;
    const { maxBytes, maxItems } = sizeOf(field);
    if (field.fieldKind === "message") return tooLarge(message.get(field), `${here}.`);
    if (field.fieldKind === "list") {
      const list = message.get(field);
      if (list.size > maxItems)
        return [{ path: here, message: `must have at most ${maxItems} items` }];
      if (field.listKind !== "message") return [];
      return [...list].flatMap((item, at) => tooLarge(item as ReflectMessage, `${here}[${at}].`));
    }
    const value = message.get(field);
    const isLong = typeof value === "string" && Buffer.byteLength(value) > maxBytes;
    return isLong ? [{ path: here, message: `must have at most ${maxBytes} bytes` }] : [];
  });
}

/** The size limits in the field's rules; infinite where there is none. */
const sizeOf = oncePer((field: DescField) => {
  const { type } = getOption(field, fieldRules);
  return {
    maxBytes: (type.case === "string" && Number(type.value.maxBytes)) || Number.POSITIVE_INFINITY,
    maxItems: (type.case === "repeated" && Number(type.value.maxItems)) || Number.POSITIVE_INFINITY,
  };
});

/**
 * A rule over several fields belongs to the message, so protovalidate names no field for it. The id
 * of such a rule is `<path of the field within the message>.<reason>`, which names the field; an id
 * that is just `<reason>` is about the message.
 */
function fieldViolation(violation: Violation): FieldViolation {
  const path = pathToString(violation.field);
  if (violation.rule.length > 0) return { path, message: violation.message };
  const within = violation.ruleId.split(".").slice(0, -1);
  return { path: [...(path ? [path] : []), ...within].join("."), message: violation.message };
}

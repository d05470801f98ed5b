import { create, createRegistry, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { pathToString, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import { type FieldViolation, GatewayError } from "../errors.ts";
import { file_payments_v1_rules } from "../gen/payments/v1/rules_pb.ts";

const validator = createValidator({ registry: createRegistry(file_payments_v1_rules) });

/**
 * Checks a request against the rules in the proto, for both edges alike.
 * @throws GatewayError INVALID_ARGUMENT with every refused field; it never holds a refused value.
 */
export function validate<Desc extends DescMessage>(
  schema: Desc,
  request: MessageShape<Desc>,
): void {
  const long = longLists(reflect(schema, request));
  if (long.length > 0) throw invalidFields(long);
  const result = validator.validate(schema, request);
  if (result.kind === "valid") return;
  if (result.kind === "error") throw result.error;
  throw invalidFields(result.violations.map(fieldViolation));
}

/** The most that a list of a request may hold: each item is checked by rules that take their time. */
const maxItems = 1_000;

function longLists(message: ReflectMessage, path = ""): FieldViolation[] {
  return message.fields.flatMap((field) => {
    const here = `${path}${field.name}`;
    if (field.fieldKind === "message" && message.isSet(field)) {
      return longLists(message.get(field), `${here}.`);
    }
    if (field.fieldKind !== "list" || message.get(field).size <= maxItems) return [];
    return [{ path: here, message: `must have at most ${maxItems} items` }];
  });
}

/** An INVALID_ARGUMENT that names the given fields. */
export function invalidFields(fields: readonly FieldViolation[]): GatewayError {
  const texts = fields.map(({ path, message }) => (path ? `${path}: ${message}` : message));
  return new GatewayError("INVALID_ARGUMENT", texts.join("; "), {
    reason: "INVALID_FIELDS",
    fields,
  });
}

/**
 * Compiles the rules of the given messages: the first check of a type costs tens of milliseconds,
 * which no caller should pay.
 */
export function warmUp(schemas: Iterable<DescMessage>): void {
  for (const schema of schemas) validator.validate(schema, create(schema));
}

/**
 * A rule over several fields stands on the message, and protovalidate names no field for it. The id
 * of such a rule is `<path of the field within the message>.<reason>`, so it names the field.
 */
function fieldViolation(violation: Violation): FieldViolation {
  const path = pathToString(violation.field);
  if (violation.rule.length > 0) return { path, message: violation.message };
  const within = violation.ruleId.slice(0, violation.ruleId.lastIndexOf("."));
  return { path: path ? `${path}.${within}` : within, message: violation.message };
}

import {
  type DescField,
  type DescMessage,
  getExtension,
  getOption,
  hasExtension,
  isFieldSet,
  type Message,
} from "@bufbuild/protobuf";
import type { GenExtension } from "@bufbuild/protobuf/codegenv2";
import { reflect } from "@bufbuild/protobuf/reflect";
import { type Duration, durationMs, FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
  type DurationRules,
  DurationRulesSchema,
  type FieldRules,
  FieldRulesSchema,
  field as fieldRules,
  type Int32Rules,
  Int32RulesSchema,
  MessageRulesSchema,
  message as messageRules,
  OneofRulesSchema,
  oneof as oneofRules,
  predefined,
  RepeatedRulesSchema,
  type StringRules,
  StringRulesSchema,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { file_payments_v1_rules } from "../../gen/payments/v1/rules_pb.ts";
import { compileExpression, type Holds } from "./expression.ts";
import { type Fields, readerOf } from "./field-reader.ts";
import { exactRegex, ipv4, plainEmail, surrogate, uuid } from "./texts.ts";

/**
 * Whether a message certainly keeps the rules in its proto. False decides nothing: protovalidate,
 * which evaluates all rules and words the refusals, is asked then. The check is compiled once per
 * message type from the rules; for a type with a rule that cannot be compiled it is always false.
 * `test/core/surely-valid.test.ts` compares it with protovalidate.
 */
export function isSurelyValid(schema: DescMessage, message: Message): boolean {
  return checkOf(schema)(message);
}

/** Whether the rules of a message type, and of all types in it, could be compiled. */
export function isCompiled(schema: DescMessage): boolean {
  return checkOf(schema) !== neverSure;
}

const checks = new Map<DescMessage, Holds>();
const neverSure: Holds = () => false;
const always: Holds = () => true;

function checkOf(desc: DescMessage): Holds {
  let check = checks.get(desc);
  if (check === undefined) {
    // A type that contains itself is not compiled.
    checks.set(desc, neverSure);
    try {
      check = compile(desc);
    } catch {
      check = neverSure;
    }
    checks.set(desc, check);
  }
  return check;
}

/** Compiles all rules of a message type. @throws Error if one of them cannot be compiled */
function compile(desc: DescMessage): Holds {
  const rules = known(MessageRulesSchema, getOption(desc, messageRules), ["cel"]);
  const holds = [
    ...rules.cel.map(({ expression }) => compileExpression(expression, desc)),
    ...desc.oneofs.flatMap((oneof) => {
      const { required } = known(OneofRulesSchema, getOption(oneof, oneofRules), ["required"]);
      const isSet = (message: Fields) =>
        (message[oneof.localName] as { case?: string }).case !== undefined;
      return required ? [isSet as Holds] : [];
    }),
    ...desc.fields.flatMap((field) => {
      const check = fieldCheck(field);
      return check === always ? [] : [check];
    }),
  ];
  return (message) => {
    for (const hold of holds) if (!hold(message)) return false;
    return true;
  };
}

function fieldCheck(field: DescField): Holds {
  const rules = known(FieldRulesSchema, getOption(field, fieldRules), fieldRuleNames);
  const { isSet, value } = readerOf(field);
  const ofValue = field.fieldKind === "list" ? listCheck(field, rules) : valueCheck(field, rules);
  if (ofValue === always && !rules.required) return always;
  // A field without presence always counts as set: its zero value too has to keep the rules.
  const isAlwaysThere =
    field.fieldKind === "list" || field.presence === FeatureSet_FieldPresence.IMPLICIT;
  return (message) => {
    const there = isSet(message as Fields);
    if (rules.required && !there) return false;
    return there || isAlwaysThere ? ofValue(value(message as Fields)) : true;
  };
}

const fieldRuleNames = ["required", "string", "int32", "enum", "repeated", "duration"];

function listCheck(field: DescField, { type }: FieldRules): Holds {
  if (type.case !== undefined && type.case !== "repeated") throw new Error(`odd rules: ${field}`);
  const rules = type.case === "repeated" ? type.value : undefined;
  if (rules) known(RepeatedRulesSchema, rules, ["min_items", "max_items", "items"]);
  const { items } = rules ?? {};
  if (items) known(FieldRulesSchema, items, ["string", "int32", "enum"]);
  const bound = (name: "minItems" | "maxItems", otherwise: number) =>
    rules && isFieldSet(rules, RepeatedRulesSchema.field[name]) ? Number(rules[name]) : otherwise;
  const min = bound("minItems", 0);
  const max = bound("maxItems", Number.POSITIVE_INFINITY);
  const ofItem = valueCheck(field, items);
  return (value) => {
    const list = value as readonly unknown[];
    if (list.length < min || list.length > max) return false;
    return ofItem === always || list.every(ofItem);
  };
}

/** The check of a field's value, or of an item of a list. */
function valueCheck(field: DescField, rules: FieldRules | undefined): Holds {
  const { type } = rules ?? {};
  if (field.message) {
    if (type?.case === "duration") return durationCheck(type.value);
    if (type?.case !== undefined) throw new Error(`not compiled: ${field}`);
    if (field.message.typeName.startsWith("google.protobuf.")) return always;
    if (!isCompiled(field.message)) throw new Error(`not compiled: ${field.message}`);
    return checkOf(field.message);
  }
  switch (type?.case) {
    case undefined:
      return always;
    case "string":
      return textCheck(type.value);
    case "int32":
      return integerCheck(type.value);
    case "enum": {
      const { definedOnly, in: among, notIn } = type.value;
      const numbers = new Set(field.enum?.values.map(({ number }) => number));
      const others = new Set(notIn);
      if (type.value.$unknown || among.length > 0) throw new Error(`not compiled: ${field}`);
      return (value) =>
        (!definedOnly || numbers.has(value as number)) && !others.has(value as number);
    }
    default:
      throw new Error(`not compiled: ${field}`);
  }
}

function integerCheck(given: Int32Rules): Holds {
  const { lessThan, greaterThan } = known(Int32RulesSchema, given, ["lt", "lte", "gt", "gte"]);
  return (value) => {
    const number = value as number;
    if (lessThan.case === "lt" && number >= lessThan.value) return false;
    if (lessThan.case === "lte" && number > lessThan.value) return false;
    if (greaterThan.case === "gt" && number <= greaterThan.value) return false;
    return !(greaterThan.case === "gte" && number < greaterThan.value);
  };
}

function durationCheck(given: DurationRules): Holds {
  const { lessThan, greaterThan } = known(DurationRulesSchema, given, ["lte", "gte"]);
  const least = greaterThan.value ? durationMs(greaterThan.value) : Number.NEGATIVE_INFINITY;
  const most = lessThan.value ? durationMs(lessThan.value) : Number.POSITIVE_INFINITY;
  return (value) => {
    const { seconds, nanos } = value as Duration;
    // Outside the bounds of Duration itself: left to protovalidate.
    if (nanos < 0 || nanos > 999_999_999) return false;
    const ms = Number(seconds) * 1_000 + nanos / 1_000_000;
    return ms >= least && ms <= most;
  };
}

const textRuleNames = [
  ...["min_len", "max_len", "max_bytes", "pattern", "in"],
  ...["email", "uuid", "ipv4"],
];

/** Bounds are checked first: the time that a pattern takes grows with the text. */
function textCheck(given: StringRules): Holds {
  const rules = known(StringRulesSchema, given, textRuleNames, stringExtensions);
  const checks: ((text: string) => boolean)[] = [];
  const bound = (name: "minLen" | "maxLen" | "maxBytes", otherwise: number) =>
    isFieldSet(rules, StringRulesSchema.field[name]) ? Number(rules[name]) : otherwise;
  const minLength = bound("minLen", 0);
  const maxLength = bound("maxLen", Number.POSITIVE_INFINITY);
  const maxBytes = bound("maxBytes", Number.POSITIVE_INFINITY);
  if (rules.pattern !== "") {
    const pattern = exactRegex(rules.pattern);
    checks.push((text) => pattern.test(text));
  }
  if (rules.in.length > 0) {
    const among = new Set(rules.in);
    checks.push((text) => among.has(text));
  }
  const { wellKnown } = rules;
  if (wellKnown.value === true) {
    const form = { email: plainEmail, uuid, ipv4 }[wellKnown.case as "email" | "uuid" | "ipv4"];
    checks.push((text) => form.test(text));
  }
  for (const extension of stringExtensions) {
    if (!hasExtension(rules, extension)) continue;
    const { cel } = getOption(extension, predefined);
    if (cel.length === 0) throw new Error(`not compiled: ${extension}`);
    const rule = getExtension(rules, extension);
    checks.push(...cel.map(({ expression }) => compileExpression(expression, undefined, rule)));
  }
  const isPlain = checks.length === 0 && minLength === 0;
  return (value) => {
    const text = value as string;
    if (text.length > maxLength) return false;
    // A UTF-16 code unit takes at most three bytes of UTF-8.
    if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes) return false;
    if (isPlain) return true;
    if (text.length < minLength || surrogate.test(text)) return false;
    for (const check of checks) if (!check(text)) return false;
    return true;
  };
}

const stringExtensions = file_payments_v1_rules.extensions as GenExtension<StringRules, unknown>[];

/** Returns the rules. @throws Error if one is set that `names` and `extensions` do not contain */
function known<Rules extends Message>(
  schema: DescMessage,
  rules: Rules,
  names: readonly string[],
  extensions: readonly { readonly number: number }[] = [],
): Rules {
  const reflected = reflect(schema, rules);
  for (const field of reflected.fields) {
    const { name } = field;
    if (reflected.isSet(field) && !names.includes(name))
      throw new Error(`not compiled: ${schema.name}.${name}`);
  }
  for (const { no } of rules.$unknown ?? []) {
    if (!extensions.some(({ number }) => number === no)) throw new Error(`not compiled: ${no}`);
  }
  return rules;
}

import {
  createRegistry,
  type DescField,
  type DescMessage,
  getOption,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  type ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { scalarZeroValue } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
  FieldRulesSchema,
  field as fieldRules,
  MessageRulesSchema,
  message as messageRules,
  OneofRulesSchema,
  oneof as oneofRules,
  predefined,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { file_payments_v1_rules } from "../../src/gen/payments/v1/rules_pb.ts";

/** A JavaScript expression. */
type Code = string;

/** A form of the terms of a CEL expression, and the code for its groups. */
type Term = readonly [form: RegExp, codeOf: (a: string, b: string, c: string) => Code];

/**
 * The code of a check for each of these messages and of those within them: whether the message `m`
 * certainly keeps the rules in its proto. It calls the other checks by the names of their messages.
 * @throws Error for a rule that is not understood here
 */
export function checksOf(requests: readonly DescMessage[]): ReadonlyMap<DescMessage, Code> {
  const found = new Set(requests);
  for (const { fields } of found) {
    for (const { message } of fields) if (message && isOurs(message)) found.add(message);
  }
  return new Map([...found].map((desc) => [desc, messageCode(desc)]));
}

/** The names that patterns have in the code. */
export const patterns = new Map<string, Code>();

/** The code of whether a text has this pattern, which is compiled once, where the checks are loaded. */
function matches(pattern: RegExp, text: Code): Code {
  const name = patterns.get(`${pattern}`) ?? `pattern${patterns.size}`;
  patterns.set(`${pattern}`, name);
  return `${name}.test(${text})`;
}

function messageCode(desc: DescMessage): Code {
  const { cel = [], ...others } = inJson(MessageRulesSchema, getOption(desc, messageRules));
  refuse(others);
  const expressions = (cel as { expression: string }[]).map(({ expression }) =>
    expressionCode(expression, desc),
  );
  const oneofs = desc.oneofs.flatMap((oneof): Code[] => {
    const { required, ...others } = inJson(OneofRulesSchema, getOption(oneof, oneofRules));
    refuse(others);
    return required ? [`m.${oneof.localName}.case !== undefined`] : [];
  });
  const fields = desc.fields.flatMap((field): Code[] => {
    const { required, ...rules } = inJson(FieldRulesSchema, getOption(field, fieldRules));
    const value = fieldValue(field, "m");
    const all = [...valueCodes(rules, value, field), ...messagesCode(field, value)];
    if (required) return [isSet(field, "m"), ...all];
    if (all.length === 0 || isAlwaysThere(field)) return all;
    return [`!(${isSet(field, "m")}) || (${allOf(all)})`];
  });
  return allOf([...expressions, ...oneofs, ...fields]);
}

/** The checks of a value by its rules, such as `{ string: { maxBytes: "255" } }`. */
function valueCodes(rules: JsonObject, value: Code, field: DescField): Code[] {
  return Object.entries(rules).flatMap(([type, given]) => {
    const all = Object.entries(given as JsonObject).flatMap(([name, bound]) => {
      const codeOf = codes[`${type}.${name}`] ?? codeOfOption(name);
      return bound === false ? [] : [codeOf(value, bound, field)];
    });
    // Protovalidate counts characters, and its patterns are of characters, not of UTF-16 code units.
    return type === "string" ? [`!${matches(/[\ud800-\udfff]/, value)}`, ...all] : all;
  });
}

type CodeOf = (value: Code, bound: JsonValue, field: DescField) => Code;

/** The code of rules: bounds are as in JSON, where wide integers are text and durations have a unit. */
const codes: Readonly<Record<string, CodeOf>> = {
  "string.minLen": (text, min) => `${text}.length >= ${min}`,
  "string.maxLen": (text, max) => `${text}.length <= ${max}`,
  // A UTF-16 code unit takes at most three bytes of UTF-8.
  "string.maxBytes": (text, max) =>
    `${text}.length * 3 <= ${max} || Buffer.byteLength(${text}) <= ${max}`,
  "string.in": isIn,
  // Texts of these forms are accepted by protovalidate, and some less usual texts too.
  "string.email": (text) =>
    matches(
      /^[\w.+-]+@[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/i,
      text,
    ),
  "string.uuid": (text) =>
    matches(/^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i, text),
  "string.ipv4": (text) =>
    matches(/^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/, text),
  "int32.gte": (value, min) => `${value} >= ${min}`,
  "int32.lte": (value, max) => `${value} <= ${max}`,
  "enum.definedOnly": (value, _, field) =>
    isIn(value, field.enum?.values.map(({ number }) => number) ?? []),
  "enum.notIn": (value, among) => `!(${isIn(value, among)})`,
  "repeated.maxItems": (list, max) => `${list}.length <= ${max}`,
  "repeated.items": (list, rules, field) =>
    `${list}.every((item: any) => ${allOf(valueCodes(rules as JsonObject, "item", field))})`,
  "duration.gte": (value, min) => `${secondsOf(value)} >= ${Number.parseFloat(String(min))}`,
  "duration.lte": (value, max) => `${secondsOf(value)} <= ${Number.parseFloat(String(max))}`,
};

function isIn(value: Code, among: JsonValue): Code {
  return (among as JsonValue[]).map((one) => `${value} === ${JSON.stringify(one)}`).join(" || ");
}

/** NaN, which keeps no bound, for a duration that is malformed. */
function secondsOf(value: Code): Code {
  const isWhole = `${value}.nanos >= 0 && ${value}.nanos <= 999_999_999`;
  return `(${isWhole} ? Number(${value}.seconds) + ${value}.nanos / 1e9 : Number.NaN)`;
}

/** The code of a rule of our own, whose name is in brackets. */
function codeOfOption(name: string): CodeOf {
  const option = registry.getExtension(name.slice(1, -1));
  if (!option) throw notUnderstood(name);
  const { cel } = getOption(option, predefined);
  return (value, rule) =>
    allOf(cel.map(({ expression }) => textExpressionCode(expression, rule, value)));
}

/** The check of the message, or messages, that a field holds, if it holds any with rules. */
function messagesCode({ message, fieldKind }: DescField, value: Code): Code[] {
  if (!message || !isOurs(message)) return [];
  return [fieldKind === "list" ? `${value}.every(${message.name})` : `${message.name}(${value})`];
}

function isOurs({ typeName }: DescMessage): boolean {
  return !typeName.startsWith("google.protobuf.");
}

/**
 * The code of a CEL expression about a message, of the kind that the rules of our protos use: `has`,
 * `size`, comparisons with literals, `in`, flags, `!`, `&&`, `||` and parentheses.
 * @throws Error for any other expression
 */
export function expressionCode(expression: string, type: DescMessage): Code {
  const hasAll = (path: string): Code => {
    let desc: DescMessage | undefined = type;
    let value = "m";
    const steps = path.split(".").map((name) => {
      const field = fieldOf(desc, name);
      const step = isSet(field, value);
      desc = field.message;
      value = fieldValue(field, value);
      return step;
    });
    return allOf(steps);
  };
  const given = (name: string): Code => {
    const field = fieldOf(type, name);
    // Any other field may not be set, and has a default value then.
    if (!isAlwaysThere(field)) throw notUnderstood(`${field}`);
    return fieldValue(field, "m");
  };
  return translated(expression, [
    [/has\(this\.([\w.]+)\)/g, hasAll],
    [/size\(this\.(\w+)\) > (\d+)/g, (name, least) => `${given(name)}.length > ${least}`],
    [
      /this\.(\w+) ([=!]=) (\d+|'[^'\\]*')/g,
      (name, operator, other) => `${given(name)} ${operator}= ${other}`,
    ],
    [
      /this\.(\w+) in (\[\d+(?:, \d+)*\])/g,
      (name, among) => isIn(given(name), JSON.parse(among) as number[]),
    ],
    [/this\.(\w+)/g, (name) => `${given(name)} === true`],
  ]);
}

/**
 * The code of a CEL expression about a text without surrogates: `matches`, `isUri`, `rule`, `!`, `&&`,
 * `||` and parentheses. The check may refuse a valid but unusual URL.
 * @param rule the value of `rule`: that of the option that the expression belongs to
 * @throws Error for any other expression
 */
export function textExpressionCode(expression: string, rule: unknown, value: Code): Code {
  // That a text is no URL is not known for sure.
  if (/!\s*(?:this\.isUri|\()/.test(expression)) throw notUnderstood(expression);
  return translated(expression, [
    [
      /this\.matches\('((?:[^'\\]|\\[\\'])*)'\)/g,
      (pattern) => matches(exactRegex(pattern.replace(/\\(.)/g, "$1")), value),
    ],
    [/this\.isUri\(\)/g, () => matches(plainUri, value)],
    [/\brule\b/g, () => `${rule === true}`],
  ]);
}

/** Every text of this form is a URI; so are some less usual texts. */
const plainUri =
  /^https?:\/\/[\w-]+(?:\.[\w-]+)*(?::\d{1,5})?(?:\/[\w.~-]*)*(?:\?[\w.~=&-]*)?(?:#[\w.~-]*)?$/i;

/** Translates the terms; operators and parentheses are the same in JavaScript. */
function translated(expression: string, terms: readonly Term[]): Code {
  const all: Code[] = [];
  let text = expression;
  for (const [form, codeOf] of terms) {
    text = text.replace(form, (_, a, b, c) => `#${all.push(codeOf(a, b, c)) - 1}`);
  }
  let rest = text.replace(/#\d+/g, "x").replaceAll(" ", "");
  for (let before = ""; before !== rest; ) {
    before = rest;
    rest = rest.replace(/!x|\(x\)|x(?:&&|\|\|)x/, "x");
  }
  if (rest !== "x") throw notUnderstood(expression);
  return text.replace(/#(\d+)/g, (_, at) => `(${all[Number(at)]})`);
}

/**
 * Translates an RE2 pattern into a JavaScript one that matches the same texts, if these contain no
 * surrogates.
 * @throws Error for a pattern that may mean something else in JavaScript
 */
export function exactRegex(pattern: string): RegExp {
  const anyCase = pattern.startsWith("^(?i)");
  const plain = anyCase ? `^${pattern.slice("^(?i)".length)}` : pattern;
  if (!plainPattern.test(plain)) throw notUnderstood(pattern);
  return new RegExp(plain, anyCase ? "i" : "");
}

/**
 * The patterns that are translated: letters, digits and some marks, classes of them, groups,
 * alternatives, repetitions and escaped marks.
 */
const plainPattern =
  /^\^?(?:[\w:/@,=!~%&;#"' -]|\\[.\\/*+?()[\]{}|^$-]|\[\^?[\w:/@,=!~%&;#"' ?.-]+\]|\(\?:|\((?!\?)|\)|\||[*+?]|\{\d+(?:,\d*)?\})*\$?$/;

function fieldOf(desc: DescMessage | undefined, name: string): DescField {
  const field = desc?.fields.find((one) => one.name === name);
  if (!field) throw notUnderstood(name);
  return field;
}

/** The value of a field of a message; of a member of a oneof, only while it is set. */
function fieldValue({ localName, oneof }: DescField, message: Code): Code {
  return oneof ? `${message}.${oneof.localName}.value` : `${message}.${localName}`;
}

/** Whether a field is set, as protobuf-es has it. */
function isSet(field: DescField, message: Code): Code {
  const { localName, oneof, presence, fieldKind } = field;
  if (oneof) return `${message}.${oneof.localName}.case === ${JSON.stringify(localName)}`;
  const value = `${message}.${localName}`;
  if (presence !== FeatureSet_FieldPresence.IMPLICIT) return `${value} !== undefined`;
  if (fieldKind === "list") return `${value}.length > 0`;
  const zero = fieldKind === "enum" ? 0 : scalarZeroValue(field.scalar as ScalarType, false);
  return `${value} !== ${JSON.stringify(zero)}`;
}

/** Whether a field cannot be unset: its zero value counts, too. */
function isAlwaysThere({ fieldKind, presence }: DescField): boolean {
  return fieldKind === "list" || presence === FeatureSet_FieldPresence.IMPLICIT;
}

function allOf(all: readonly Code[]): Code {
  return all.length === 0 ? "true" : all.map((one) => `(${one})`).join(" && ");
}

const registry = createRegistry(file_payments_v1_rules);

/** Rules as JSON, in which those that are not set are left out. */
function inJson<Desc extends DescMessage>(schema: Desc, rules: MessageShape<Desc>): JsonObject {
  return toJson(schema, rules, { registry }) as JsonObject;
}

/** @throws Error if there are rules that no code is made of */
function refuse(others: JsonObject): void {
  const [name] = Object.keys(others);
  if (name !== undefined) throw notUnderstood(name);
}

function notUnderstood(what: string): Error {
  return new Error(`no check is made of the rule: ${what}`);
}

import {
  createRegistry,
  type DescField,
  type DescMessage,
  getOption,
  isFieldSet,
  type JsonObject,
  type JsonValue,
  type Message,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import {
  FieldRulesSchema,
  field as fieldRules,
  MessageRulesSchema,
  message as messageRules,
  OneofRulesSchema,
  oneof as oneofRules,
  predefined,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { file_payments_v1_rules } from "../../gen/payments/v1/rules_pb.ts";
import {
  compileExpression,
  compileTextExpression,
  type Holds,
  isAlwaysThere,
  readerOf,
} from "./expression.ts";

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

function checkOf(desc: DescMessage): Holds {
  let check = checks.get(desc);
  if (check === undefined) {
    // A type that contains itself is not compiled.
    checks.set(desc, neverSure);
    try {
      check = allOf(messageChecks(desc));
    } catch {
      check = neverSure;
    }
    checks.set(desc, check);
  }
  return check;
}

function allOf(all: readonly Holds[]): Holds {
  return (value) => {
    for (const holds of all) if (!holds(value)) return false;
    return true;
  };
}

/** The checks of a message. @throws Error if one of its rules cannot be compiled */
function messageChecks(desc: DescMessage): Holds[] {
  const { cel = [], ...others } = inJson(MessageRulesSchema, getOption(desc, messageRules));
  refuse(others);
  const expressions = (cel as { expression: string }[]).map(({ expression }) =>
    compileExpression(expression, desc),
  );
  const oneofs = desc.oneofs.flatMap((oneof): Holds[] => {
    const { required, ...others } = inJson(OneofRulesSchema, getOption(oneof, oneofRules));
    refuse(others);
    const { localName } = oneof;
    const isSet: Holds = (message) =>
      (message as Record<string, { case?: string }>)[localName]?.case !== undefined;
    return required ? [isSet] : [];
  });
  return [...expressions, ...oneofs, ...desc.fields.flatMap(fieldCheck)];
}

function fieldCheck(field: DescField): Holds[] {
  const { required, ...rules } = inJson(FieldRulesSchema, getOption(field, fieldRules));
  const all = [...valueChecks(field, rules), ...ofMessages(field)];
  if (all.length === 0 && !required) return [];
  const [read, holds, always] = [readerOf(field), allOf(all), isAlwaysThere(field)];
  return [
    (message) => {
      const isThere = isFieldSet(message as Message, field);
      if (!isThere && required) return false;
      return isThere || always ? holds(read(message)) : true;
    },
  ];
}

/** The check of the message, or messages, that a field holds, if it holds any with rules. */
function ofMessages({ message, fieldKind }: DescField): Holds[] {
  if (!message || message.typeName.startsWith("google.protobuf.")) return [];
  if (!isCompiled(message)) throw new Error(`not compiled: ${message}`);
  const holds = checkOf(message);
  return [fieldKind === "list" ? (all) => (all as unknown[]).every(holds) : holds];
}

/** The checks of a value by its rules, such as `{ string: { maxBytes: "255" } }`. */
function valueChecks(field: DescField, rules: JsonObject): Holds[] {
  return Object.entries(rules).flatMap(([type, given]) => {
    const all = Object.entries(given as JsonObject).flatMap(([name, bound]) => {
      const check = checksByRule[`${type}.${name}`] ?? checkOfOption(name);
      return bound === false ? [] : check(bound, field);
    });
    return type === "string" ? [hasNoSurrogate, ...all] : all;
  });
}

type CheckOf = (bound: JsonValue, field: DescField) => Holds;

/** What makes a check of a rule's bound: bounds as in JSON, where wide integers are text. */
const checksByRule: Readonly<Record<string, CheckOf>> = {
  "string.minLen": limit((text: string, min) => text.length >= min),
  "string.maxLen": limit((text: string, max) => text.length <= max),
  // A UTF-16 code unit takes at most three bytes of UTF-8.
  "string.maxBytes": limit(
    (text: string, max) => text.length * 3 <= max || Buffer.byteLength(text) <= max,
  ),
  "string.in": (among) => isIn(among),
  // Texts of these forms are accepted by protovalidate, and some less usual texts too.
  "string.email": (_) =>
    form(/^[\w.+-]+@[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/i),
  "string.uuid": (_) => form(/^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i),
  "string.ipv4": (_) => form(/^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/),
  "int32.gte": limit((value: number, min) => value >= min),
  "int32.lte": limit((value: number, max) => value <= max),
  "enum.definedOnly": (_, field) => isIn(field.enum?.values.map(({ number }) => number) ?? []),
  "enum.notIn": (among) => {
    const holds = isIn(among);
    return (value) => !holds(value);
  },
  "repeated.maxItems": limit((list: readonly unknown[], max) => list.length <= max),
  "repeated.items": (rules, field) => {
    const holds = allOf(valueChecks(field, rules as JsonObject));
    return (list) => (list as unknown[]).every(holds);
  },
  "duration.gte": limit((value: Duration, min) => secondsOf(value) >= min),
  "duration.lte": limit((value: Duration, max) => secondsOf(value) <= max),
};

function limit<Value>(holds: (value: Value, bound: number) => boolean): CheckOf {
  return (given) => {
    // A duration is in seconds, with their unit.
    const bound = Number.parseFloat(String(given));
    return (value) => holds(value as Value, bound);
  };
}

function form(regex: RegExp): Holds {
  return (text) => regex.test(text as string);
}

function isIn(all: JsonValue): Holds {
  const among = new Set<unknown>(all as JsonValue[]);
  return (value) => among.has(value);
}

/** Protovalidate counts characters, and its patterns are of characters, not of UTF-16 code units. */
const hasNoSurrogate: Holds = (text) => !/[\ud800-\udfff]/.test(text as string);

/** NaN, which keeps no bound, for a duration that is malformed. */
function secondsOf({ seconds, nanos }: Duration): number {
  return nanos < 0 || nanos > 999_999_999 ? Number.NaN : Number(seconds) + nanos / 1e9;
}

/** The check of a rule of our own, whose name is in brackets. */
function checkOfOption(name: string): CheckOf {
  const option = registry.getExtension(name.slice(1, -1));
  if (!option) throw new Error(`not compiled: ${name}`);
  const { cel } = getOption(option, predefined);
  return (rule) => allOf(cel.map(({ expression }) => compileTextExpression(expression, rule)));
}

const registry = createRegistry(file_payments_v1_rules);

/** Rules as JSON, in which those that are not set are left out. */
function inJson<Desc extends DescMessage>(schema: Desc, rules: MessageShape<Desc>): JsonObject {
  return toJson(schema, rules, { registry }) as JsonObject;
}

/** @throws Error if there are rules that no check is made of */
function refuse(others: JsonObject): void {
  const [name] = Object.keys(others);
  if (name !== undefined) throw new Error(`not compiled: ${name}`);
}

import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { oncePer } from "../collections/once-per.ts";
import { invalidFields } from "../core/validate.ts";
import { type FieldViolation, GatewayError } from "../errors.ts";

/**
 * The error for a JSON request that protobuf-es could not read, from its error's text, which quotes
 * the value that did not fit: a card number, perhaps. Names only the field and what was expected
 * there, in the form of a field violation.
 */
export function errorOfFault(request: DescMessage, message: string): GatewayError {
  const fault = jsonFault(message);
  const violation = fault && fieldViolationOf(request, fault);
  if (violation) return invalidFields([violation]);
  return new GatewayError("INVALID_ARGUMENT", wholeFault(fault?.rest ?? ""));
}

function jsonFault(message: string): JsonFault | undefined {
  const match = /^cannot decode (field|message|oneof|enum) ([\w.]+) from JSON/.exec(message);
  if (!match) return undefined;
  const [where, kind, name] = match as unknown as [string, JsonFault["kind"], string];
  return { kind, name, rest: message.slice(where.length) };
}

/** The error text for a request in which no single field is at fault. */
function wholeFault(rest: string): string {
  const twice = /^: duplicate object key "([A-Za-z_]\w{0,63})"$/.exec(rest);
  if (twice) return `the key "${twice[1]}" is given twice`;
  return isUnfitKey(rest)
    ? "the request has a key that is not a field"
    : "the request is not a JSON object";
}

/** The error of protobuf-es for JSON that it could not read. */
interface JsonFault {
  readonly kind: "field" | "message" | "oneof" | "enum";
  /** Full name of what could not be read; that of a field or oneof begins with its message's. */
  readonly name: string;
  /** The explanation, which may quote a value of the request. */
  readonly rest: string;
}

/**
 * Names the field of a request that a fault is about and what is expected there, with words from
 * the schema only. The path leads from the request to the field, without the index of a list item,
 * which the fault does not contain. Undefined for a fault about the request as a whole.
 */
function fieldViolationOf(request: DescMessage, fault: JsonFault): FieldViolation | undefined {
  const { kind, name, rest } = fault;
  const isMember = kind === "field" || kind === "oneof";
  const dot = isMember ? name.lastIndexOf(".") : name.length;
  const holder = placesIn(request).get(name.slice(0, dot));
  if (!holder) return undefined;
  const { type, paths } = holder;
  const member = name.slice(dot + 1);
  const unknownKey = /^: key "([A-Za-z_]\w{0,63})" is unknown$/.exec(rest)?.[1];
  if (kind === "message" && unknownKey !== undefined) {
    return violation(paths, unknownKey, "is not a field of the request");
  }
  if (isUnfitKey(rest)) return violation(paths, "", "has a key that is not a field");
  if (type.kind === "enum" || kind === "message")
    return violation(paths, "", `must be ${noun(type)}`);
  if (kind === "oneof") {
    const members = type.oneofs.find((oneof) => oneof.name === member)?.fields ?? [];
    const names = members.map((field) => field.name).join(", ");
    return violation(paths, "", `may hold only one of ${names}`);
  }
  const field = type.fields.find((candidate) => candidate.name === member);
  if (!field) return undefined;
  if (rest === ": set multiple times") return violation(paths, member, "is given twice");
  const isHalf = rest === ": expected string: invalid UTF8";
  const expected = isHalf ? "Unicode, without half of a surrogate pair" : nounOf(field);
  return violation(paths, member, `must be ${expected}`);
}

/**
 * Whether the fault is an unknown key. Call it after keys that look like a field's name are
 * handled: any other key may be a value, and must not be quoted.
 */
function isUnfitKey(rest: string): boolean {
  return rest.startsWith(': key "');
}

/**
 * The violation at these paths; undefined for the request as a whole. If several fields have the
 * type, the fault does not say which of them is wrong: the violation has their common path, or the
 * first one's if they have nothing in common, and names them all.
 */
function violation(
  paths: readonly string[],
  member: string,
  message: string,
): FieldViolation | undefined {
  const [first = "", ...others] = paths.map((path) => joined(path, member));
  if (others.length === 0) return first === "" ? undefined : { path: first, message };
  const path = sharedPath([first, ...others]);
  if (path !== "") return { path, message: `${member} ${message}`.trimStart() };
  return { path: first, message: `${[first, ...others].join(" or ")} ${message}` };
}

/** The common beginning of these paths. */
function sharedPath(paths: readonly string[]): string {
  const [first = [], ...others] = paths.map((path) => path.split("."));
  const depth = first.findIndex((name, index) => others.some((other) => other[index] !== name));
  return first.slice(0, depth).join(".");
}

function joined(path: string, name: string): string {
  return path === "" || name === "" ? path + name : `${path}.${name}`;
}

function nounOf(field: DescField): string {
  switch (field.fieldKind) {
    case "scalar":
      return scalarNouns[field.scalar] ?? "of another type";
    case "list":
      return "a list without null, each item of its type";
    case "map":
      return "an object";
    default:
      return noun(field.message ?? field.enum);
  }
}

const scalarNouns: Partial<Record<ScalarType, string>> = {
  [ScalarType.STRING]: "a string",
  [ScalarType.BOOL]: "true or false",
  [ScalarType.INT32]: "an integer of 32 bits",
  [ScalarType.UINT32]: "an integer of 32 bits, not below zero",
};

function noun(type: DescMessage | DescEnum): string {
  if (type.kind === "message") return jsonForms[type.typeName] ?? "an object";
  const names = type.values.filter(({ number }) => number !== 0).map((value) => value.name);
  return `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}

/** How to describe messages that are not an object in JSON, by type name. */
const jsonForms: Readonly<Record<string, string>> = {
  "google.protobuf.Duration": 'a duration such as "15s"',
  "google.protobuf.Timestamp": 'a time such as "2026-01-31T12:00:00Z"',
};

/** A message type or enum in a request, and the paths of the fields of this type. */
interface Places {
  readonly type: DescMessage | DescEnum;
  readonly paths: string[];
}

/** All types in a request by full name; the request itself has the empty path. */
const placesIn = oncePer((request: DescMessage): ReadonlyMap<string, Places> => {
  const found = new Map<string, Places>();
  collect(request, "", found);
  return found;
});

/** Ends, since no request type contains itself; `test/rpc/decode-errors.test.ts` checks this. */
function collect(type: DescMessage | DescEnum, path: string, found: Map<string, Places>): void {
  const holder = found.get(type.typeName) ?? { type, paths: [] };
  found.set(type.typeName, holder);
  holder.paths.push(path);
  if (type.kind === "enum") return;
  for (const field of type.fields) {
    const child = field.message ?? field.enum;
    if (child) collect(child, joined(path, field.name), found);
  }
}

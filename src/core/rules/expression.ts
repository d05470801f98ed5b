import { type DescField, type DescMessage, isFieldSet, type Message } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

/** Whether a rule holds for a message, or for the value of a field. */
export type Holds = (value: unknown) => boolean;

/** A form of the terms of an expression, and what makes a check of its groups. */
type Term = readonly [form: RegExp, make: (a: string, b: string, c: string) => Holds];

/**
 * Compiles a CEL expression about a message, of the kind that the rules of our protos use: `has`,
 * `size`, comparisons with literals, `in`, flags, `!`, `&&`, `||` and parentheses.
 * @throws Error for any other expression: only protovalidate can evaluate it
 */
export function compileExpression(expression: string, type: DescMessage): Holds {
  const isSet = (path: string): Holds => {
    let desc: DescMessage | undefined = type;
    const steps = path.split(".").map((name) => {
      const field = fieldOf(desc, name);
      desc = field.message;
      return { field, read: readerOf(field) };
    });
    return (value) => {
      for (const { field, read } of steps) {
        if (!isFieldSet(value as Message, field)) return false;
        value = read(value);
      }
      return true;
    };
  };
  const compared = (name: string, holds: Holds): Holds => {
    const field = fieldOf(type, name);
    // Any other field may not be set, and has a default value then.
    if (!isAlwaysThere(field)) throw new Error(`not compiled: ${field}`);
    const read = readerOf(field);
    return (message) => holds(read(message));
  };
  return parse(expression, [
    [/has\(this\.([\w.]+)\)/g, isSet],
    [
      /size\(this\.(\w+)\) > (\d+)/g,
      (name, least) => compared(name, (list) => (list as unknown[]).length > Number(least)),
    ],
    [
      /this\.(\w+) ([=!])= (\d+|'[^'\\]*')/g,
      (name, operator, given) => {
        const other = given.startsWith("'") ? given.slice(1, -1) : Number(given);
        return compared(name, (value) => (value === other) === (operator === "="));
      },
    ],
    [
      /this\.(\w+) in \[(\d+(?:, \d+)*)\]/g,
      (name, given) => {
        const among = new Set<unknown>(given.split(", ").map(Number));
        return compared(name, (value) => among.has(value));
      },
    ],
    [/this\.(\w+)/g, (name) => compared(name, (value) => value === true)],
  ]);
}

/**
 * Compiles a CEL expression about a text without surrogates: `matches`, `isUri`, `rule`, `!`, `&&`,
 * `||` and parentheses. The check may refuse a valid but unusual URL.
 * @param rule the value of `rule`: that of the option that the expression belongs to
 * @throws Error for any other expression: only protovalidate can evaluate it
 */
export function compileTextExpression(expression: string, rule: unknown): Holds {
  // That a text is no URL is not known for sure.
  if (/!\s*(?:this\.isUri|\()/.test(expression)) throw new Error(`not compiled: ${expression}`);
  return parse(expression, [
    [
      /this\.matches\('((?:[^'\\]|\\[\\'])*)'\)/g,
      (pattern) => {
        const regex = exactRegex(pattern.replace(/\\(.)/g, "$1"));
        return (text) => regex.test(text as string);
      },
    ],
    [/this\.isUri\(\)/g, () => (text) => plainUri.test(text as string)],
    [/\brule\b/g, () => () => rule === true],
  ]);
}

/**
 * Reads `!`, `&&`, `||` and parentheses around terms. Each term, and then each pair of parentheses from
 * the innermost on, is compiled to a part, and its text becomes the part's name: `#0`.
 */
function parse(expression: string, terms: readonly Term[]): Holds {
  const parts: Holds[] = [];
  const named = (holds: Holds) => `#${parts.push(holds) - 1}`;
  const partOf = (text: string): Holds => {
    const [, negations = "", at] = /^([! ]*)#(\d+) *$/.exec(text) ?? [];
    const holds = parts[Number(at)];
    if (!holds) throw new Error(`not compiled: ${expression}`);
    const isNegated = negations.replaceAll(" ", "").length % 2 === 1;
    return isNegated ? (value) => !holds(value) : holds;
  };
  const either = (text: string): Holds => {
    const all = text.split("||").map((both) => both.split("&&").map(partOf));
    return (value) => all.some((both) => both.every((holds) => holds(value)));
  };
  let text = expression;
  for (const [form, make] of terms) text = text.replace(form, (_, a, b, c) => named(make(a, b, c)));
  const parentheses = /\(([^()]*)\)/g;
  while (parentheses.test(text))
    text = text.replace(parentheses, (_, inner) => named(either(inner)));
  return either(text);
}

function fieldOf(desc: DescMessage | undefined, name: string): DescField {
  const field = desc?.fields.find((one) => one.name === name);
  if (!field) throw new Error(`no field: ${name}`);
  return field;
}

/** Returns what reads a field of a message; for a member of a oneof, only while it is set. */
export function readerOf({ localName, oneof }: DescField): (message: unknown) => unknown {
  const name = oneof?.localName ?? localName;
  if (!oneof) return (message) => (message as Fields)[name];
  return (message) => ((message as Fields)[name] as { value?: unknown }).value;
}

type Fields = Readonly<Record<string, unknown>>;

/** Whether a field cannot be unset: its zero value counts, too. */
export function isAlwaysThere({ fieldKind, presence }: DescField): boolean {
  return fieldKind === "list" || presence === FeatureSet_FieldPresence.IMPLICIT;
}

/**
 * Translates an RE2 pattern into a JavaScript one that matches the same texts, if these contain no
 * surrogates.
 * @throws Error for a pattern that may mean something else in JavaScript
 */
export function exactRegex(pattern: string): RegExp {
  const anyCase = pattern.startsWith("^(?i)");
  const plain = anyCase ? `^${pattern.slice("^(?i)".length)}` : pattern;
  if (!plainPattern.test(plain)) throw new Error(`not compiled: ${pattern}`);
  return new RegExp(plain, anyCase ? "i" : "");
}

/**
 * The patterns that are translated: letters, digits and some marks, classes of them, groups,
 * alternatives, repetitions and escaped marks.
 */
const plainPattern =
  /^\^?(?:[\w:/@,=!~%&;#"' -]|\\[.\\/*+?()[\]{}|^$-]|\[\^?[\w:/@,=!~%&;#"' ?.-]+\]|\(\?:|\((?!\?)|\)|\||[*+?]|\{\d+(?:,\d*)?\})*\$?$/;

/** Every text of this form is a URI; so are some less usual texts. */
const plainUri =
  /^https?:\/\/[\w-]+(?:\.[\w-]+)*(?::\d{1,5})?(?:\/[\w.~-]*)*(?:\?[\w.~=&-]*)?(?:#[\w.~-]*)?$/i;

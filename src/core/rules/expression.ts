import type { DescMessage } from "@bufbuild/protobuf";
import { type FieldReader, type Fields, readerOf } from "./field-reader.ts";
import { exactRegex, plainUri } from "./texts.ts";

/** Whether a rule holds for a message, or for the text of a field. */
export type Holds = (value: unknown) => boolean;

/**
 * Compiles the subset of CEL that the rules of our protos use: `has`, `size`, comparisons with
 * literals, `in`, `matches`, `isUri`, `!`, `&&`, `||` and parentheses. A rule that it reports as
 * kept is kept; a valid but unusual URL it may report as invalid.
 * @param type the message type of `this`; undefined when `this` is a text
 * @param rule the value of `rule`: that of the option that the expression belongs to
 * @throws Error for any other expression: only protovalidate can evaluate it
 */
export function compileExpression(
  expression: string,
  type: DescMessage | undefined,
  rule?: unknown,
): Holds {
  const tokens = tokensOf(expression);
  let at = 0;
  const holds = either(true);
  if (at < tokens.length) throw new Error(`not understood: ${tokens[at]}`);
  return holds;

  function take(token: string): boolean {
    if (tokens[at] !== token) return false;
    at += 1;
    return true;
  }

  function expect(token: string): void {
    if (!take(token)) throw new Error(`${token} expected, not ${tokens[at]}`);
  }

  /** `positive`: not negated by a `!`. Only there may a check be stricter than its rule. */
  function either(positive: boolean): Holds {
    let left = both(positive);
    while (take("||")) {
      const [first, second] = [left, both(positive)];
      left = (value) => first(value) || second(value);
    }
    return left;
  }

  function both(positive: boolean): Holds {
    let left = term(positive);
    while (take("&&")) {
      const [first, second] = [left, term(positive)];
      left = (value) => first(value) && second(value);
    }
    return left;
  }

  function term(positive: boolean): Holds {
    if (take("!")) {
      const holds = term(!positive);
      return (value) => !holds(value);
    }
    if (take("(")) {
      const holds = either(positive);
      expect(")");
      return holds;
    }
    if (take("rule")) return () => rule === true;
    if (take("has")) {
      expect("(");
      const { isSet } = path();
      expect(")");
      return (value) => isSet(value as Fields);
    }
    if (take("size")) {
      expect("(");
      const list = path();
      expect(")");
      return compared((value) => (list.value(value) as readonly unknown[]).length);
    }
    if (type === undefined) return ofText(positive);
    const field = path();
    return compared(field.value);
  }

  function ofText(positive: boolean): Holds {
    expect("this");
    expect(".");
    if (take("isUri")) {
      if (!positive) throw new Error("that it is no address is not known for sure");
      expect("(");
      expect(")");
      return (value) => plainUri.test(value as string);
    }
    expect("matches");
    expect("(");
    const pattern = exactRegex(literal() as string);
    expect(")");
    return (value) => pattern.test(value as string);
  }

  function compared(read: (message: Fields) => unknown): Holds {
    if (take(">")) {
      const other = literal() as number;
      return (value) => (read(value as Fields) as number) > other;
    }
    const isEqual = !take("!=");
    const among = new Set<unknown>();
    if (!isEqual || take("==")) among.add(literal());
    else if (take("in")) {
      expect("[");
      do among.add(literal());
      while (take(","));
      expect("]");
    } else among.add(true);
    return (value) => among.has(read(value as Fields)) === isEqual;
  }

  /** `this.a.b`; a field of a message that is not set is not set either. */
  function path(): FieldReader {
    expect("this");
    let desc = type;
    let found: FieldReader | undefined;
    while (take(".")) {
      const name = tokens[at++];
      const field = desc?.fields.find((one) => one.name === name);
      if (!field) throw new Error(`no field: ${name}`);
      const [outer, own] = [found, readerOf(field)];
      found = outer ? within(outer, own) : own;
      desc = field.message;
    }
    if (!found) throw new Error("a field expected");
    return found;
  }

  function literal(): unknown {
    const token = tokens[at++] ?? "";
    if (token.startsWith("'")) return token.slice(1);
    if (/^-?\d+$/.test(token)) return Number(token);
    throw new Error(`a literal expected, not ${token}`);
  }
}

function within(outer: FieldReader, own: FieldReader): FieldReader {
  return {
    isSet: (message) => outer.isSet(message) && own.isSet(outer.value(message) as Fields),
    value(message) {
      if (!outer.isSet(message)) throw new Error("a value of a message that is not set");
      return own.value(outer.value(message) as Fields);
    },
  };
}

const tokenForm =
  /\s*(?:(?<text>'(?:[^'\\]|\\.)*')|(?<other>&&|\|\||[!=]=|[!<>()[\],.]|-?\d+|\w+))/y;

/** Splits an expression. A text literal keeps its opening quote and loses its closing one. */
function tokensOf(expression: string): string[] {
  const tokens: string[] = [];
  for (let from = 0; from < expression.length; from = tokenForm.lastIndex) {
    tokenForm.lastIndex = from;
    const { text, other } = tokenForm.exec(expression)?.groups ?? {};
    if (text === undefined && other === undefined) throw new Error(`not understood: ${expression}`);
    tokens.push(text === undefined ? (other as string) : `'${unescaped(text.slice(1, -1))}`);
  }
  return tokens;
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, char: string) => {
    if (char !== "\\" && char !== "'") throw new Error(`not understood: \\${char}`);
    return char;
  });
}

import { ConfigError } from "../errors.ts";
import { FileProblem, valueIn } from "./kinds.ts";
import { type Name, type Values, type Variable, variables } from "./variables.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Says what is wrong with values that are right each by itself: a sentence that begins with the name
 * of the variable to change.
 */
export type Rule = (values: Values) => string | undefined;

/**
 * Reads variables, and others that decide about them. What looks at a wrong variable is left out: it
 * would only lead to a second mistake.
 * @throws ConfigError for all mistakes together
 */
export function readVariables<N extends Name>(
  env: Environment,
  names: readonly N[],
  rules: readonly Rule[] = [],
): Pick<Values, N> {
  const known = new Map<Name, unknown>();
  const mistakes: string[] = [];
  const values = new Proxy({} as Values, {
    get(_, name: Name) {
      if (!known.has(name))
        known.set(
          name,
          unlessWrong(() => read(env, name, values)),
        );
      const value = known.get(name);
      if (value === wrong) throw wrong;
      return value;
    },
  });
  const unlessWrong = (step: () => unknown): unknown => {
    try {
      return step();
    } catch (error) {
      if (error instanceof ConfigError) mistakes.push(...error.mistakes);
      else if (error !== wrong) throw error;
      return wrong;
    }
  };
  const found = names.map((name) => [name, unlessWrong(() => values[name])]);
  for (const rule of rules) {
    const mistake = unlessWrong(() => rule(values));
    if (typeof mistake === "string") mistakes.push(mistake);
  }
  if (mistakes.length > 0) throw new ConfigError(mistakes);
  return Object.fromEntries(found);
}

/** In place of the value of a variable that is wrong. */
const wrong = new Error("a variable is wrong");

/** @throws ConfigError */
function read(env: Environment, name: Name, values: Values): unknown {
  const { kind, secret, required, default: byDefault }: Variable = variables[name];
  if (!matters(env, name, values)) return undefined;
  const text =
    textOf(env, name) ?? (typeof byDefault === "function" ? byDefault(values) : byDefault);
  if (text === undefined) {
    if (required) throw new ConfigError(name, `is missing, accepted is ${kind.accepts}`);
    return undefined;
  }
  const value = namingFile(name, () => kind.read(text));
  if (value !== undefined) return value;
  const got = secret ? "a value that is not shown" : JSON.stringify(text);
  throw new ConfigError(name, `got ${got}, accepted is ${kind.accepts}`);
}

/** If a wrong variable decides whether this one matters, its own mistakes are told too if it is set. */
function matters(env: Environment, name: Name, values: Values): boolean {
  const { readIf }: Variable = variables[name];
  try {
    return readIf?.(values) ?? true;
  } catch (error) {
    if (error === wrong && textOf(env, name) !== undefined) return true;
    throw error;
  }
}

/**
 * The text of one variable. An empty variable counts as not set. The value of some variables may be
 * given as the content of the file that `<name>_FILE` names.
 * @throws ConfigError if it is given twice, or the file cannot be read
 */
export function textOf(env: Environment, name: Name): string | undefined {
  const text = env[name] === "" ? undefined : env[name];
  const { inFile }: Variable = variables[name];
  const file = inFile && env[`${name}_FILE`];
  if (!file) return text;
  if (text !== undefined) throw new ConfigError(name, `is given twice: also as ${name}_FILE`);
  return namingFile(`${name}_FILE`, () => valueIn(file));
}

/** @throws ConfigError in place of FileProblem, with the variable that names the file */
function namingFile<T>(variable: string, use: () => T): T {
  try {
    return use();
  } catch (error) {
    throw error instanceof FileProblem ? new ConfigError(variable, error.message) : error;
  }
}

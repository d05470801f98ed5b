import { hasFailover } from "../redis/url.ts";
import { ConfigError } from "./config-error.ts";
import { FileProblem, fileText } from "./kinds.ts";
import { sendsMetrics, sendsTraces } from "./opentelemetry.ts";
import {
  type Fact,
  type LookUp,
  type Name,
  type Values,
  type Variable,
  variables,
} from "./variables.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Says what is wrong with values that are right each by itself. */
export interface Rule {
  /** The variables that it looks at; it applies only if none of them is wrong. */
  readonly of: readonly Name[];
  /** The mistake: a sentence that begins with the name of the variable to change. */
  check(values: Values): string | undefined;
}

/**
 * Reads variables, and others that decide about them.
 * @throws ConfigError for all mistakes together
 */
export function readVariables<N extends Name>(
  env: Environment,
  names: readonly N[],
  rules: readonly Rule[] = [],
): Pick<Values, N> {
  const values: Partial<Record<Name, unknown>> = {};
  const mistakes = new Map<Name, string>();
  const lookUp: LookUp = (name) => {
    if (!(name in values)) {
      values[name] = undefined;
      try {
        values[name] = read(env, name, (fact) => facts[fact]());
      } catch (error) {
        if (error instanceof FileProblem) mistakes.set(name, `${name}: ${error.message}`);
        else if (error instanceof ConfigError) mistakes.set(name, error.message);
        else throw error;
      }
    }
    return values[name] as Values[typeof name] | undefined;
  };
  const facts = factsOf(env, lookUp);
  for (const name of names) lookUp(name);
  const all = [...mistakes.values()];
  for (const { of, check } of rules) {
    const mistake = of.some((name) => mistakes.has(name)) ? undefined : check(values as Values);
    if (mistake !== undefined) all.push(mistake);
  }
  if (all.length > 0) throw new ConfigError(all);
  return values as Values;
}

/** A variable that is wrong says nothing. */
function factsOf(env: Environment, lookUp: LookUp): Readonly<Record<Fact, () => boolean>> {
  const isSet = (name: "UPSTREAM_URL" | "REDIS_URL") => Boolean(env[name] || env[`${name}_FILE`]);
  return {
    sandbox: () => !isSet("UPSTREAM_URL") && !env.MERCHANTS_FILE,
    oneAccount: () => !env.MERCHANTS_FILE,
    production: () => env.NODE_ENV === "production",
    redis: () => isSet("REDIS_URL"),
    failover: () => hasFailover(lookUp("REDIS_URL") ?? ""),
    keys: () => lookUp("AUTH_MODE")?.has("keys") ?? false,
    jwt: () => lookUp("AUTH_MODE")?.has("jwt") ?? false,
    telemetry: () => lookUp("OTEL_SDK_DISABLED") === false,
    traces: () => sendsTraces(lookUp),
    tracesByShare: () => lookUp("OTEL_TRACES_SAMPLER")?.endsWith("ratio") ?? false,
    metrics: () => sendsMetrics(lookUp),
    export: () => sendsTraces(lookUp) || sendsMetrics(lookUp),
  };
}

/** @throws ConfigError, FileProblem */
function read(env: Environment, name: Name, is: (fact: Fact) => boolean): unknown {
  const { kind, secret, required, readIf, ...variable }: Variable = variables[name];
  if (readIf && !is(readIf)) return undefined;
  const fallback = typeof variable.default === "function" ? variable.default(is) : variable.default;
  const text = textOf(env, name) ?? fallback;
  if (text === undefined) {
    if (required) throw new ConfigError(name, `is missing, accepted is ${kind.accepts}`);
    return undefined;
  }
  const value = kind.read(text);
  if (value !== undefined) return value;
  const got = secret ? "a value that is not shown" : JSON.stringify(text);
  throw new ConfigError(name, `got ${got}, accepted is ${kind.accepts}`);
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
  try {
    return fileText(file).replace(/\r?\n$/, "");
  } catch (error) {
    if (error instanceof FileProblem) throw new ConfigError(`${name}_FILE`, error.message);
    throw error;
  }
}

import {
  type GraphQLSchema,
  getVariableValues,
  type OperationDefinitionNode,
  type VariableValues,
} from "graphql";
import { RequestError, refusalFor } from "./errors.ts";
import { limits } from "./limits.ts";

export type Variables = Readonly<Record<string, unknown>>;

/**
 * The values of an operation's variables.
 * @throws RequestError, or an AggregateError of all for which it is refused
 */
export function valuesOf(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  given: Variables,
): VariableValues {
  for (const node of variableDefinitions) {
    const name = node.variable.name.value;
    const fault = Object.hasOwn(given, name) ? faultOf(given[name], "") : undefined;
    if (fault === undefined) continue;
    const message = `Variable "$${name}" has invalid value${fault}`;
    throw new RequestError(message, "BAD_USER_INPUT", { ofGraphql: true, nodes: node });
  }
  const coerced = getVariableValues(schema, variableDefinitions, given, {
    maxErrors: limits.faults,
    // A name that a caller made up may be data: it is compared with no other.
    hideSuggestions: true,
  });
  if (coerced.variableValues) return coerced.variableValues;
  // Beyond `maxErrors` stands one more, which says so.
  const errors = coerced.errors.slice(0, limits.faults);
  throw new AggregateError(errors.map((error) => refusalFor(error)));
}

/**
 * Where a value holds what JSON cannot carry, and what is wrong there; undefined if nowhere. No type
 * takes such a value, but those of GraphQL.js do not look: a number beyond 2^53 has lost its last
 * digits, and as an ID would name something else.
 */
function faultOf(value: unknown, path: string): string | undefined {
  const where = path && ` at ${path}`;
  if (typeof value === "string" && !value.isWellFormed()) {
    return `${where}: half of a surrogate pair stands alone, which is not Unicode`;
  }
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    return `${where}: a JSON number this large does not keep its digits: send a string`;
  }
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, item] of Object.entries(value)) {
    const at = Array.isArray(value) ? `[${key}]` : namedOf(key) && `.${key}`;
    const fault = faultOf(item, path + at);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** A key in a message. One that is no GraphQL name of up to 64 characters is misplaced data. */
export function namedOf(key: string): string {
  return /^[A-Za-z_]\w{0,63}$/.test(key) ? ` "${key}"` : "";
}

import {
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInputType,
  isListType,
  isNonNullType,
  isRequiredInputField,
  type OperationDefinitionNode,
  typeFromAST,
  type VariableDefinitionNode,
} from "graphql";
import { limits } from "./limits.ts";
import { RequestError } from "./request-error.ts";

type Variables = Readonly<Record<string, unknown>>;

/**
 * What is wrong with the variables of an operation, at most `limits.faults` of it, before the executor
 * looks: its own errors quote what was sent as often as something is wrong with it.
 */
export function faultsOfVariables(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  variables: Variables,
): RequestError[] {
  if (holdsMoreThan(limits.values, variables)) {
    const message = `the variables hold more than ${limits.values} values`;
    return [new RequestError(message, code, { status: 400 })];
  }
  const faults: RequestError[] = [];
  for (const definition of variableDefinitions) {
    for (const { path, what } of faultsOfVariable(schema, definition, variables)) {
      const name = definition.variable.name.value;
      const message = `Variable "$${name}" is invalid at "${path}": ${what}`;
      faults.push(new RequestError(message, code, { nodes: definition }));
      if (faults.length === limits.faults) return faults;
    }
  }
  return faults;
}

const code = "BAD_USER_INPUT";

/** Counts what is in lists and objects, and they themselves; nothing is looked at behind the bound. */
function holdsMoreThan(max: number, variables: Variables): boolean {
  let count = 0;
  const pending: object[] = [variables];
  for (let next = pending.pop(); next; next = pending.pop()) {
    for (const key in next) {
      count += 1;
      if (count > max) return true;
      const value = (next as Variables)[key];
      if (typeof value === "object" && value !== null) pending.push(value);
    }
  }
  return false;
}

interface Fault {
  readonly path: string;
  readonly what: string;
}

/** What is no input type, and what is required and absent, is left to the executor. */
function* faultsOfVariable(
  schema: GraphQLSchema,
  { variable, type }: VariableDefinitionNode,
  variables: Variables,
): Generator<Fault> {
  const name = variable.name.value;
  const inputType = typeFromAST(schema, type);
  if (!isInputType(inputType) || !Object.hasOwn(variables, name)) return;
  yield* faultsOf(variables[name], inputType, name);
}

function* faultsOf(value: unknown, type: GraphQLInputType, path: string): Generator<Fault> {
  if (isNonNullType(type)) {
    if (value === null || value === undefined) yield { path, what: "must not be null" };
    else yield* faultsOf(value, type.ofType, path);
  } else if (value === null || value === undefined) {
    return;
  } else if (isListType(type)) {
    if (!Array.isArray(value)) return yield* faultsOf(value, type.ofType, path);
    for (const [index, item] of value.entries()) {
      yield* faultsOf(item, type.ofType, `${path}[${index}]`);
    }
  } else if (isInputObjectType(type)) {
    yield* faultsOfObject(value, type, path);
  } else if (typeof value === "string" && !value.isWellFormed()) {
    yield { path, what: "is no well-formed Unicode: half of a surrogate pair stands alone" };
  } else {
    try {
      if (type.coerceInputValue(value, true) !== undefined) return;
    } catch (error) {
      // The messages of our own scalars quote nothing; those of GraphQL's own do.
      const isOwn = !isEnumType(type) && !builtIn.has(type.name) && error instanceof Error;
      if (isOwn) return yield { path, what: error.message };
    }
    yield { path, what: isEnumType(type) ? `is no ${type.name}` : `${type.name} expected` };
  }
}

const builtIn: ReadonlySet<string> = new Set(["Int", "Float", "String", "Boolean", "ID"]);

function* faultsOfObject(
  value: unknown,
  type: GraphQLInputObjectType,
  path: string,
): Generator<Fault> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return yield { path, what: `${type.name} expected, an object` };
  }
  const given = value as Variables;
  const fields = type.getFields();
  let count = 0;
  for (const key in given) {
    count += 1;
    if (Object.hasOwn(fields, key)) continue;
    // A name that GraphQL has no room for is no field that was misspelt, but data at the wrong place.
    const named = fieldName.test(key) ? ` "${key}"` : "";
    yield { path, what: `${type.name} has no such field${named}` };
  }
  for (const field of Object.values(fields)) {
    if (Object.hasOwn(given, field.name)) {
      yield* faultsOf(given[field.name], field.type, `${path}.${field.name}`);
    } else if (isRequiredInputField(field)) {
      yield { path: `${path}.${field.name}`, what: "is required" };
    }
  }
  if (!type.isOneOf) return;
  const values = Object.values(given);
  if (count !== 1 || values[0] === null) {
    yield { path, what: `${type.name} takes exactly one field, which is not null` };
  }
}

const fieldName = /^[A-Za-z_]\w{0,63}$/;

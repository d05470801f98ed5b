import {
  type GraphQLEnumType,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLScalarType,
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

export type Variables = Readonly<Record<string, unknown>>;

/** A variable that an operation declares. */
interface Variable {
  readonly name: string;
  readonly type: GraphQLInputType;
  readonly definition: VariableDefinitionNode;
}

/** The variables of an operation. GraphQL.js reports those whose type is not an input type. */
export function variablesOf(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
): readonly Variable[] {
  return variableDefinitions.flatMap((definition) => {
    const type = typeFromAST(schema, definition.type);
    return isInputType(type) ? { name: definition.variable.name.value, type, definition } : [];
  });
}

/**
 * The errors of an operation's variables, at most `limits.faults`. Runs before GraphQL.js checks
 * them, since each of its errors quotes the value that was sent.
 */
export function faultsOfVariables(
  variables: readonly Variable[],
  given: Variables,
): RequestError[] {
  const faults = new Faults();
  for (const variable of variables) {
    const { name, type } = variable;
    // GraphQL.js reports required variables that are absent.
    if (!Object.hasOwn(given, name)) continue;
    faults.variable = variable;
    check(given[name], type, name, faults);
    if (faults.isFull) break;
  }
  return faults.errors;
}

/** The first errors of an operation's variables. Checks stop when it is full. */
class Faults {
  readonly errors: RequestError[] = [];
  /** The one that is checked. */
  variable: Variable | undefined;

  get isFull(): boolean {
    return this.errors.length >= limits.faults;
  }

  add(path: string, what: string): void {
    if (this.isFull || !this.variable) return;
    const { name, definition: nodes } = this.variable;
    const message = `Variable "$${name}" is invalid at "${path}": ${what}`;
    const options = { status: 400, ofGraphql: true, nodes };
    this.errors.push(new RequestError(message, "BAD_USER_INPUT", options));
  }
}

function check(value: unknown, type: GraphQLInputType, path: string, faults: Faults): void {
  if (isNonNullType(type)) {
    if (value === null || value === undefined) faults.add(path, "must not be null");
    else check(value, type.ofType, path, faults);
  } else if (value === null || value === undefined) {
    return;
  } else if (isListType(type)) {
    if (Array.isArray(value)) checkItems(value, type.ofType, path, faults);
    else check(value, type.ofType, path, faults);
  } else if (isInputObjectType(type)) {
    checkObject(value, type, path, faults);
  } else {
    const what = faultOfLeaf(value, type);
    if (what !== undefined) faults.add(path, what);
  }
}

function checkItems(
  items: readonly unknown[],
  type: GraphQLInputType,
  path: string,
  faults: Faults,
): void {
  for (let index = 0; index < items.length && !faults.isFull; index++) {
    check(items[index], type, `${path}[${index}]`, faults);
  }
}

function faultOfLeaf(
  value: unknown,
  type: GraphQLScalarType | GraphQLEnumType,
): string | undefined {
  if (typeof value === "string" && !value.isWellFormed()) {
    return "is not well-formed Unicode: half of a surrogate pair stands alone";
  }
  // JSON has lost its last digits; a literal in the document keeps them.
  if (typeof value === "number" && type.name === "ID" && !Number.isSafeInteger(value)) {
    return "ID takes a string: a JSON number does not keep all digits";
  }
  try {
    if (type.coerceInputValue(value, true) !== undefined) return undefined;
  } catch (error) {
    // Messages of our own scalars quote no value; those of the built-in scalars do.
    if (!isEnumType(type) && !builtIn.has(type.name) && error instanceof Error) {
      return error.message;
    }
  }
  return isEnumType(type) ? `is not a value of ${type.name}` : `${type.name} expected`;
}

const builtIn: ReadonlySet<string> = new Set(["Int", "Float", "String", "Boolean", "ID"]);

function checkObject(
  value: unknown,
  type: GraphQLInputObjectType,
  path: string,
  faults: Faults,
): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    faults.add(path, `${type.name} expected, an object`);
    return;
  }
  const given = value as Variables;
  const fields = type.getFields();
  let count = 0;
  for (const key in given) {
    count += 1;
    if (Object.hasOwn(fields, key)) continue;
    faults.add(path, `${type.name} has no such field${namedOf(key)}`);
  }
  for (const name in fields) {
    if (faults.isFull) return;
    const field = fields[name] as GraphQLInputField;
    if (Object.hasOwn(given, name)) check(given[name], field.type, `${path}.${name}`, faults);
    else if (isRequiredInputField(field)) faults.add(`${path}.${name}`, "is required");
  }
  if (!type.isOneOf) return;
  const values = Object.values(given);
  if (count !== 1 || values[0] === null) {
    faults.add(path, `${type.name} takes exactly one field, which is not null`);
  }
}

/** A key in a message. One that is no GraphQL name of up to 64 characters is misplaced data. */
export function namedOf(key: string): string {
  return /^[A-Za-z_]\w{0,63}$/.test(key) ? ` "${key}"` : "";
}

import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLAbstractType,
  GraphQLError,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  getArgumentValues,
  getVariableValues,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  locatedError,
  type OperationDefinitionNode,
  responsePathAsArray,
  type SelectionSetNode,
  typeFromAST,
} from "graphql";
import { fragmentsOf } from "./root-fields.ts";

/**
 * Executes one operation. Returns undefined, with nothing executed, if GraphQL.js must report that
 * its variables are invalid.
 */
export type ExecuteCompiled = (
  args: Pick<ExecutionArgs, "contextValue" | "variableValues">,
) => Promise<ExecutionResult> | undefined;

/**
 * Compiles a valid query or mutation: looks up once which fields each type needs, and how their
 * values are completed. The result is that of GraphQL.js (`execution/Executor`), whose functions
 * for variables, arguments and errors it uses. It avoids two costs of GraphQL.js in each operation:
 * an abort by exception at its end, and weak tables that retain its memory long after. See
 * `test/graphql/compiled-operation.test.ts`, which compares the two.
 *
 * The `info` of resolvers has only what is known when compiling: the field, its nodes, types and
 * schema.
 * @param onFields called with the number of fields of each plan, which tells its memory
 * @returns undefined for what is left to GraphQL.js: directives, variables of fragments
 */
export function compileOperation(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  onFields: (count: number) => void = () => {},
): ExecuteCompiled | undefined {
  if (operation.operation === "subscription") return undefined;
  const plan = compilePlan(schema, document, operation, onFields);
  if (!plan) return undefined;
  const serially = operation.operation === "mutation";
  const definitions = operation.variableDefinitions ?? [];
  return ({ contextValue, variableValues }) => {
    const coerced = getVariableValues(schema, definitions, variableValues ?? {}, { maxErrors: 50 });
    if (!coerced.variableValues) return undefined;
    return new Run(contextValue, coerced.variableValues).execute(plan, serially);
  };
}

/**
 * Returns the `data` of a subscription's result for an event. Undefined if it is not available at
 * once and in full: a field needs a read, or failed.
 */
export type ShowEvent = (
  event: unknown,
  args: Pick<ExecutionArgs, "contextValue" | "variableValues">,
) => Record<string, unknown> | undefined;

/**
 * Compiles what a valid subscription selects from its events, as `compileOperation` does. The
 * resolver of its root field is not called: it is assumed to return the event of a delivery.
 */
export function compileSubscription(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  onFields: (count: number) => void = () => {},
): ShowEvent | undefined {
  const [field, ...others] = compilePlan(schema, document, operation, onFields) ?? [];
  if (!field || others.length > 0) return undefined;
  const definitions = operation.variableDefinitions ?? [];
  return (event, { contextValue, variableValues }) => {
    const coerced = getVariableValues(schema, definitions, variableValues ?? {});
    if (!coerced.variableValues) return undefined;
    const run = new Run(contextValue, coerced.variableValues, true);
    try {
      return { [field.key]: field.complete(run, event, pathOf(field, undefined)) };
    } catch {
      return undefined;
    }
  };
}

function compilePlan(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  onFields: (count: number) => void,
): readonly FieldPlan[] | undefined {
  const type = schema.getRootType(operation.operation);
  if (!type || operation.directives?.length) return undefined;
  return new Compiler(schema, document, onFields).compile(operation, type);
}

class NotCompiled extends Error {}

type VariableValues = NonNullable<ReturnType<typeof getVariableValues>["variableValues"]>;

/** Where a value is in the result. */
type Path = NonNullable<GraphQLResolveInfo["path"]>;

/**
 * Converts what a resolver returned to the value in the result. Only a leaf may omit its path.
 * @throws an error if the value does not fit its type
 */
type Complete = (run: Run, value: unknown, path: Path | undefined) => unknown;

interface FieldPlan {
  /** Its name in the result. */
  readonly key: string;
  readonly name: string;
  readonly nodes: readonly FieldNode[];
  readonly field: GraphQLField<unknown, unknown>;
  readonly info: GraphQLResolveInfo;
  readonly isNonNull: boolean;
  /** Whether its value is a scalar or an enum. */
  readonly isLeaf: boolean;
  readonly complete: Complete;
}

class Compiler {
  readonly #schema: GraphQLSchema;
  readonly #onFields: (count: number) => void;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** Selections of objects that are still to be compiled, after the fields that lead to them. */
  readonly #later: (() => void)[] = [];
  #fields = 0;

  constructor(schema: GraphQLSchema, document: DocumentNode, onFields: (count: number) => void) {
    this.#schema = schema;
    this.#onFields = onFields;
    this.#fragments = fragmentsOf(document);
  }

  /** Undefined if GraphQL.js has to execute the operation. */
  compile(
    { selectionSet }: OperationDefinitionNode,
    type: GraphQLObjectType,
  ): readonly FieldPlan[] | undefined {
    try {
      const fields = this.fieldsOf([selectionSet], type);
      for (let next = this.#later.pop(); next; next = this.#later.pop()) next();
      return fields;
    } catch (error) {
      if (error instanceof NotCompiled) return undefined;
      throw error;
    } finally {
      this.#onFields(this.#fields);
    }
  }

  /** The fields that the selections ask of objects of a type, in the order of the result. */
  fieldsOf(selections: readonly SelectionSetNode[], type: GraphQLObjectType): FieldPlan[] {
    const grouped = new Map<string, FieldNode[]>();
    const spread = new Set<string>();
    for (const selection of selections) this.#collect(selection, type, grouped, spread);
    return [...grouped].flatMap(([key, nodes]) => this.#field(key, nodes, type) ?? []);
  }

  #collect(
    { selections }: SelectionSetNode,
    type: GraphQLObjectType,
    grouped: Map<string, FieldNode[]>,
    spread: Set<string>,
  ): void {
    for (const selection of selections) {
      if (selection.directives?.length) throw new NotCompiled();
      if (selection.kind === Kind.FIELD) {
        const key = selection.alias?.value ?? selection.name.value;
        // On a plain object, this key would set the prototype.
        if (key === "__proto__") throw new NotCompiled();
        const nodes = grouped.get(key);
        if (nodes) nodes.push(selection);
        else grouped.set(key, [selection]);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        if (this.#applies(selection, type)) {
          this.#collect(selection.selectionSet, type, grouped, spread);
        }
      } else {
        const { value: name } = selection.name;
        const fragment = this.#fragments.get(name);
        if (!fragment || fragment.variableDefinitions?.length) throw new NotCompiled();
        if (spread.has(name) || !this.#applies(fragment, type)) continue;
        spread.add(name);
        this.#collect(fragment.selectionSet, type, grouped, spread);
      }
    }
  }

  #applies(
    {
      typeCondition,
    }: Pick<FragmentDefinitionNode, "typeCondition"> | { typeCondition?: undefined },
    type: GraphQLObjectType,
  ): boolean {
    if (!typeCondition) return true;
    const condition = typeFromAST(this.#schema, typeCondition);
    return (
      condition === type || (isAbstractType(condition) && this.#schema.isSubType(condition, type))
    );
  }

  #field(key: string, nodes: FieldNode[], parentType: GraphQLObjectType): FieldPlan | undefined {
    const [node] = nodes;
    const name = node?.name.value ?? "";
    const field = this.#schema.getField(parentType, name);
    if (!field) return undefined;
    // A fragment is compiled again wherever it is spread, so nested fragments multiply fields.
    this.#fields += 1;
    if (this.#fields > maxFields) throw new NotCompiled();
    const returnType = field.type;
    const schema = this.#schema;
    const known = { fieldName: name, fieldNodes: nodes, returnType, parentType, schema };
    const info = known as unknown as GraphQLResolveInfo;
    const about = { nodes, info };
    const complete = this.#completion(returnType, about);
    const isNonNull = isNonNullType(returnType);
    const isLeaf = isLeafType(isNonNull ? returnType.ofType : returnType);
    return { key, name, nodes, field, info, isNonNull, isLeaf, complete };
  }

  #completion(type: GraphQLOutputType, about: About): Complete {
    const { info } = about;
    if (isNonNullType(type)) {
      const complete = this.#completion(type.ofType, about);
      return (run, value, path) => {
        const completed = complete(run, value, path);
        if (completed !== null) return completed;
        const name = `${info.parentType}.${info.fieldName}`;
        throw new Error(`Cannot return null for non-nullable field ${name}.`);
      };
    }
    const complete = this.#ofValue(type, about);
    return (run, value, path) => {
      if (value instanceof Error) throw value;
      return value === null || value === undefined ? null : complete(run, value, path);
    };
  }

  #ofValue(type: Exclude<GraphQLOutputType, { ofType: never }>, about: About): Complete {
    const { info } = about;
    if (isListType(type)) return this.#ofList(type.ofType, about);
    if (isLeafType(type)) {
      return (_, value) => {
        const shown = type.coerceOutputValue(value);
        if (shown !== null && shown !== undefined) return shown;
        throw new Error(
          `Expected a value of ${type} for field ${info.parentType}.${info.fieldName}.`,
        );
      };
    }
    if (isObjectType(type)) return this.#ofObject(type, about);
    if (isAbstractType(type)) return this.#ofAbstract(type, about);
    throw new NotCompiled();
  }

  #ofList(itemType: GraphQLOutputType, about: About): Complete {
    const complete = this.#completion(itemType, about);
    const isNonNull = isNonNullType(itemType);
    const { nodes, info } = about;
    return (run, value, path) => {
      if (!Array.isArray(value)) {
        const name = `${info.parentType}.${info.fieldName}`;
        throw new GraphQLError(`Expected Iterable, but did not find one for field "${name}".`);
      }
      const items: unknown[] = [];
      let holdsPromise = false;
      try {
        for (const [index, item] of value.entries()) {
          const at = { prev: path, key: index, typename: undefined };
          const shown = run.shown(item, complete, { nodes, isNonNull }, at);
          holdsPromise ||= shown instanceof Promise;
          items.push(shown);
        }
      } catch (error) {
        leave(items);
        throw error;
      }
      return holdsPromise ? Promise.all(items) : items;
    };
  }

  #ofObject(type: GraphQLObjectType, { nodes }: About): Complete {
    // No type of the schema asks its objects.
    if (type.isTypeOf) throw new NotCompiled();
    let fields: readonly FieldPlan[] = [];
    this.#later.push(() => {
      fields = this.fieldsOf(selectionsOf(nodes), type);
    });
    return (run, value, path) => run.fields(fields, value, path);
  }

  #ofAbstract(type: GraphQLAbstractType, about: About): Complete {
    const { resolveType } = type;
    if (!resolveType) throw new NotCompiled();
    const completions = new Map<string, Complete>();
    for (const possible of this.#schema.getPossibleTypes(type)) {
      completions.set(possible.name, this.#ofObject(possible, about));
    }
    const begin = (run: Run, value: unknown, path: Path | undefined, name: unknown) => {
      const complete = completions.get(name as string);
      if (complete) return complete(run, value, path);
      throw new GraphQLError(`Abstract type "${type}" was resolved to none of its types.`);
    };
    return (run, value, path) => {
      const name = resolveType(value, run.contextValue, about.info, type);
      return isPromiseLike(name)
        ? Promise.resolve(name).then((known) => begin(run, value, path, known))
        : begin(run, value, path, name);
    };
  }
}

/** Within the limits, only a document written to multiply its fields has more. */
const maxFields = 2_000;

/** The field that a value is completed for. */
interface About {
  readonly nodes: readonly FieldNode[];
  readonly info: GraphQLResolveInfo;
}

function selectionsOf(nodes: readonly FieldNode[]): SelectionSetNode[] {
  return nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
}

/** The execution of one operation. */
class Run {
  readonly contextValue: unknown;
  readonly #variables: VariableValues;
  readonly #errors: GraphQLError[] = [];
  /** Paths that are null because of an error. No further error is reported at or below them. */
  readonly #nulled = new Set<Path | undefined>();
  /** Whether an error, or a promise, ends the execution by an exception. */
  readonly #isAtOnce: boolean;
  #isOver = false;

  constructor(contextValue: unknown, variables: VariableValues, isAtOnce = false) {
    this.contextValue = contextValue;
    this.#variables = variables;
    this.#isAtOnce = isAtOnce;
  }

  async execute(fields: readonly FieldPlan[], serially: boolean): Promise<ExecutionResult> {
    let data: Fields | null;
    try {
      data = await (serially ? this.#oneByOne(fields) : this.fields(fields, undefined, undefined));
    } catch (error) {
      this.#add(error as GraphQLError, undefined);
      data = null;
    }
    this.#isOver = true;
    const errors = this.#errors;
    return errors.length > 0 ? { errors, data } : { data };
  }

  async #oneByOne(fields: readonly FieldPlan[]): Promise<Fields> {
    const shown: Fields = {};
    for (const field of fields) shown[field.key] = await this.#field(field, undefined, undefined);
    return shown;
  }

  fields(
    fields: readonly FieldPlan[],
    source: unknown,
    path: Path | undefined,
  ): Fields | Promise<Fields> {
    const shown: Fields = {};
    let promises: Promise<void>[] | undefined;
    try {
      for (const field of fields) {
        const value = this.#field(field, source, path);
        shown[field.key] = value;
        if (!(value instanceof Promise)) continue;
        promises ??= [];
        promises.push(
          value.then((ready) => {
            shown[field.key] = ready;
          }),
        );
      }
    } catch (error) {
      leave(promises);
      throw error;
    }
    return promises ? Promise.all(promises).then(() => shown) : shown;
  }

  #field(plan: FieldPlan, source: unknown, prev: Path | undefined): unknown {
    let value: unknown;
    try {
      value = this.#resolve(plan, source);
      // Most fields are plain values, whose path is needed only for an error.
      if (plan.isLeaf && !isPromiseLike(value)) return plan.complete(this, value, undefined);
    } catch (error) {
      return this.#fail(error, plan, pathOf(plan, prev));
    }
    return this.shown(value, plan.complete, plan, pathOf(plan, prev));
  }

  #resolve({ field, name, nodes, info }: FieldPlan, source: unknown): unknown {
    const args =
      field.args.length === 0
        ? noArguments
        : getArgumentValues(field, nodes[0] as FieldNode, this.#variables);
    if (field.resolve) return field.resolve(source, args, this.contextValue, info);
    if ((typeof source !== "object" && typeof source !== "function") || source === null)
      return undefined;
    const value = (source as Record<string, unknown>)[name];
    return typeof value === "function" ? value.call(source, args, this.contextValue, info) : value;
  }

  /** The value in the result, or null with its error recorded. @throws if null is not allowed */
  shown(value: unknown, complete: Complete, about: Failing, path: Path): unknown {
    try {
      if (isPromiseLike(value)) {
        if (this.#isAtOnce) throw leaveLater(value);
        return this.#whenReady(value, complete, about, path);
      }
      const completed = complete(this, value, path);
      if (!(completed instanceof Promise)) return completed;
      if (this.#isAtOnce) throw leaveLater(completed);
      return completed.catch((error) => this.#fail(error, about, path));
    } catch (error) {
      return this.#fail(error, about, path);
    }
  }

  async #whenReady(
    value: PromiseLike<unknown>,
    complete: Complete,
    about: Failing,
    path: Path,
  ): Promise<unknown> {
    try {
      const ready = await value;
      // The result is complete already, so this value is not needed.
      if (this.#isOver) throw new Error("Aborted!");
      return await complete(this, ready, path);
    } catch (error) {
      return this.#fail(error, about, path);
    }
  }

  #fail(thrown: unknown, { nodes, isNonNull }: Failing, path: Path): null {
    if (this.#isAtOnce) throw thrown;
    const error = locatedError(thrown, nodes, responsePathAsArray(path));
    if (isNonNull) throw error;
    this.#add(error, path);
    return null;
  }

  #add(error: GraphQLError, path: Path | undefined): void {
    for (let at = path; at; at = at.prev) if (this.#nulled.has(at)) return;
    if (this.#nulled.has(undefined)) return;
    this.#nulled.add(path);
    this.#errors.push(error);
  }
}

function pathOf({ key, info }: FieldPlan, prev: Path | undefined): Path {
  return { prev, key, typename: info.parentType.name };
}

const noArguments: Readonly<Record<string, unknown>> = Object.freeze({});

type Fields = Record<string, unknown>;

/** The nodes that an error is located at, and whether it also fails the parent. */
type Failing = Pick<FieldPlan, "nodes" | "isNonNull">;

/** Ignores how promises end that are no longer awaited. */
function leave(values: readonly unknown[] = []): void {
  for (const value of values) if (value instanceof Promise) value.catch(() => {});
}

/** Abandons a promise whose value is needed at once. @returns the error that ends the execution */
function leaveLater(value: PromiseLike<unknown>): Error {
  value.then(undefined, () => {});
  return new Error("not known at once");
}

function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

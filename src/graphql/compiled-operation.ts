import {
  type DocumentNode,
  defaultFieldResolver,
  type ExecutionResult,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLAbstractType,
  GraphQLError,
  type GraphQLField,
  GraphQLIncludeDirective,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  GraphQLSkipDirective,
  getArgumentValues,
  getDirectiveValues,
  type InlineFragmentNode,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  locatedError,
  type NamedTypeNode,
  type OperationDefinitionNode,
  print,
  responsePathAsArray,
  type SelectionNode,
  type SelectionSetNode,
  type VariableValues,
} from "graphql";

/**
 * Compiles an operation of a valid document; of a subscription, how its events are shown. Looks up
 * once which fields each type needs, and how their values are completed. What it selects of an object
 * is compiled when the first one is shown.
 * The results are those of GraphQL.js (`execution/Executor`), whose functions for arguments,
 * directives and errors it uses. It avoids two costs of GraphQL.js in each operation: an abort by
 * exception at its end, and weak tables that retain its memory long after. See
 * `test/graphql/compiled-operation.test.ts`, which compares the two.
 *
 * The `info` of resolvers has only what is known when compiling: the field, its nodes, types and
 * schema.
 * @param onFields called with the number of fields that are compiled, which tells their memory
 */
export function compileOperation(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  onFields: (count: number) => void = () => {},
) {
  const type = schema.getRootType(operation.operation);
  if (!type) throw new Error(`the schema has no ${operation.operation}`);
  // No other variables fit into `@skip` and `@include`.
  const switches = (operation.variableDefinitions ?? [])
    .filter(({ type }) => /^Boolean!?$/.test(print(type)))
    .map(({ variable }) => variable.name.value);
  /** Its root fields, by the values of the variables on which `@skip` and `@include` depend. */
  const plans = new Map<string, readonly FieldPlan[]>();

  function planWith({ coerced }: VariableValues): readonly FieldPlan[] {
    const key = JSON.stringify(switches.map((name) => coerced[name]));
    let plan = plans.get(key);
    if (!plan) {
      // The others may be secret, and are not kept.
      const kept = Object.fromEntries(switches.map((name) => [name, coerced[name]]));
      const fieldsOf = compiler(schema, document, { sources: {}, coerced: kept }, onFields);
      plan = fieldsOf([operation.selectionSet], type as GraphQLObjectType);
      plans.set(key, plan);
      // Its key and what it keeps of the variables take memory as well.
      onFields(1 + switches.length);
    }
    return plan;
  }

  return {
    /** @param source what the root fields read from: the event of a subscription */
    execute(values: VariableValues, context: unknown, source?: unknown): Promise<ExecutionResult> {
      const serially = operation.operation === "mutation";
      return new Run(context, values).execute(() => planWith(values), source, serially);
    },
    /**
     * The `data` of a result; undefined if it is not there at once and in full. There is no context:
     * a field that needs more than its source fails.
     */
    dataAtOnce(values: VariableValues, source: unknown): Fields | undefined {
      const run = new Run(undefined, values);
      try {
        const data = run.fields(planWith(values), source, undefined);
        if (!(data instanceof Promise)) return run.errors.length > 0 ? undefined : data;
        leave([data]);
      } catch {
        // It is executed again, to tell its errors.
      }
      return undefined;
    },
    /** Begins a subscription: its events, or the error that refuses it. */
    subscribe(values: VariableValues, context: unknown): AsyncIterable<unknown> | ExecutionResult {
      const [plan] = planWith(values);
      if (!plan?.field.subscribe) throw new Error("the operation is no subscription");
      const { field, key, info } = plan;
      try {
        return field.subscribe?.(undefined, argumentsOf(plan, values), context, info) as never;
      } catch (error) {
        return { errors: [locatedError(error, info.fieldNodes, [key])] };
      }
    },
  };
}

/** The fragments of a document by their names. */
export function fragmentsOf({ definitions }: DocumentNode): Map<string, FragmentDefinitionNode> {
  const fragments = definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  return new Map((fragments as FragmentDefinitionNode[]).map((one) => [one.name.value, one]));
}

/**
 * The fields that selections ask for, with those of their fragments, by their names in the result.
 * @param isAsked whether a selection counts, with the type that it is limited to. Default: all do
 */
export function collectFields(
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  selections: readonly SelectionSetNode[],
  isAsked: (one: SelectionNode, condition?: NamedTypeNode) => boolean = () => true,
): Map<string, FieldNode[]> {
  const fields = new Map<string, FieldNode[]>();
  const seen = new Set<InlineFragmentNode | FragmentDefinitionNode>();
  const collect = (set: SelectionSetNode) => {
    for (const one of set.selections) {
      if (one.kind === Kind.FIELD) {
        if (!isAsked(one)) continue;
        const key = (one.alias ?? one.name).value;
        const nodes = fields.get(key);
        if (nodes) nodes.push(one);
        else fields.set(key, [one]);
        continue;
      }
      const fragment = one.kind === Kind.INLINE_FRAGMENT ? one : fragments.get(one.name.value);
      if (!fragment || seen.has(fragment) || !isAsked(one, fragment.typeCondition)) continue;
      seen.add(fragment);
      collect(fragment.selectionSet);
    }
  };
  for (const set of selections) collect(set);
  return fields;
}

/** Where a value is in the result. */
interface Path {
  readonly prev: Path | undefined;
  readonly key: string | number;
}

/**
 * Converts what a resolver returned to the value in the result. Only a leaf may omit its path.
 * @throws an error if the value does not fit its type
 */
type Complete = (run: Run, value: unknown, path: Path | undefined) => unknown;

interface FieldPlan {
  /** Its name in the result. */
  readonly key: string;
  readonly field: GraphQLField<unknown, unknown>;
  readonly info: GraphQLResolveInfo;
  readonly isNonNull: boolean;
  /** Whether its value is a scalar or an enum. */
  readonly isLeaf: boolean;
  readonly complete: Complete;
}

/**
 * Returns a function that finds the fields that selections ask of objects of a type, in the order of
 * the result.
 * @param values those on which directives depend
 */
function compiler(
  schema: GraphQLSchema,
  document: DocumentNode,
  values: VariableValues,
  onFields: (count: number) => void,
) {
  const fragments = fragmentsOf(document);

  function fieldsOf(selections: readonly SelectionSetNode[], type: GraphQLObjectType): FieldPlan[] {
    const isAsked = (one: SelectionNode, condition?: NamedTypeNode) =>
      isIncluded(one) && applies(condition, type);
    const grouped = collectFields(fragments, selections, isAsked);
    onFields(grouped.size);
    return [...grouped].map(([key, nodes]) => fieldOf(key, nodes, type));
  }

  /** @throws GraphQLError if a directive depends on a variable that is null */
  function isIncluded(selection: SelectionNode): boolean {
    if (!selection.directives?.length) return true;
    const skip = getDirectiveValues(GraphQLSkipDirective, selection, values);
    const include = getDirectiveValues(GraphQLIncludeDirective, selection, values);
    return skip?.if !== true && include?.if !== false;
  }

  function applies(condition: NamedTypeNode | undefined, type: GraphQLObjectType): boolean {
    const wanted = condition && schema.getType(condition.name.value);
    if (!wanted || wanted === type) return true;
    return isAbstractType(wanted) && schema.isSubType(wanted, type);
  }

  function fieldOf(key: string, nodes: FieldNode[], parentType: GraphQLObjectType): FieldPlan {
    const fieldName = nodes[0]!.name.value;
    // The document is valid.
    const field = schema.getField(parentType, fieldName)!;
    const { type: returnType } = field;
    const known = { fieldName, fieldNodes: nodes, returnType, parentType, schema };
    const info = known as unknown as GraphQLResolveInfo;
    const isNonNull = isNonNullType(returnType);
    const isLeaf = isLeafType(isNonNull ? returnType.ofType : returnType);
    return { key, field, info, isNonNull, isLeaf, complete: completion(returnType, info) };
  }

  function completion(type: GraphQLOutputType, info: GraphQLResolveInfo): Complete {
    if (isNonNullType(type)) {
      const complete = completion(type.ofType, info);
      return (run, value, path) => {
        const completed = complete(run, value, path);
        if (completed !== null) return completed;
        throw new Error(`Cannot return null for non-nullable field ${nameOf(info)}.`);
      };
    }
    const complete = ofValue(type, info);
    return (run, value, path) => {
      if (value instanceof Error) throw value;
      return value === null || value === undefined ? null : complete(run, value, path);
    };
  }

  function ofValue(
    type: Exclude<GraphQLOutputType, { ofType: never }>,
    info: GraphQLResolveInfo,
  ): Complete {
    if (isListType(type)) return ofList(type.ofType, info);
    if (isObjectType(type)) return ofObject(type, info);
    if (isAbstractType(type)) return ofAbstract(type, info);
    const leaf = type as GraphQLLeafType;
    return (_, value) => {
      const shown = leaf.coerceOutputValue(value);
      if (shown !== null && shown !== undefined) return shown;
      throw new Error(`Expected a value of ${leaf} for field ${nameOf(info)}.`);
    };
  }

  function ofList(itemType: GraphQLOutputType, info: GraphQLResolveInfo): Complete {
    const complete = completion(itemType, info);
    const about = { info, isNonNull: isNonNullType(itemType) };
    return (run, value, path) => {
      if (!Array.isArray(value)) {
        const message = `Expected Iterable, but did not find one for field "${nameOf(info)}".`;
        throw new GraphQLError(message);
      }
      const items: unknown[] = [];
      let holdsPromise = false;
      try {
        for (const [index, item] of value.entries()) {
          const shown = run.shown(item, complete, about, { prev: path, key: index });
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

  function ofObject(type: GraphQLObjectType, { fieldNodes }: GraphQLResolveInfo): Complete {
    let fields: readonly FieldPlan[] | undefined;
    return (run, value, path) => {
      fields ??= fieldsOf(
        fieldNodes.flatMap(({ selectionSet }) => selectionSet ?? []),
        type,
      );
      return run.fields(fields, value, path);
    };
  }

  function ofAbstract(type: GraphQLAbstractType, info: GraphQLResolveInfo): Complete {
    const completions = new Map<unknown, Complete>();
    for (const possible of schema.getPossibleTypes(type)) {
      completions.set(possible.name, ofObject(possible, info));
    }
    return (run, value, path) => {
      const complete = completions.get(type.resolveType?.(value, run.context, info, type));
      if (complete) return complete(run, value, path);
      throw new GraphQLError(`Abstract type "${type}" was resolved to none of its types.`);
    };
  }

  return fieldsOf;
}

function nameOf({ parentType, fieldName }: GraphQLResolveInfo): string {
  return `${parentType}.${fieldName}`;
}

/** The execution of one operation. */
class Run {
  readonly context: unknown;
  readonly errors: GraphQLError[] = [];
  readonly #values: VariableValues;
  /** Paths that are null because of an error. No further error is reported at or below them. */
  readonly #nulled = new Set<Path | undefined>();
  #isOver = false;

  constructor(context: unknown, values: VariableValues) {
    this.context = context;
    this.#values = values;
  }

  async execute(
    planOf: () => readonly FieldPlan[],
    source: unknown,
    serially: boolean,
  ): Promise<ExecutionResult> {
    let data: Fields | null;
    try {
      const fields = planOf();
      data = await (serially ? this.#oneByOne(fields) : this.fields(fields, source, undefined));
    } catch (error) {
      this.#add(error as GraphQLError, undefined);
      data = null;
    }
    this.#isOver = true;
    const { errors } = this;
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
      const { resolve = defaultFieldResolver } = plan.field;
      value = resolve(source, argumentsOf(plan, this.#values), this.context, plan.info);
      // Most fields are plain values, whose path is needed only for an error.
      if (plan.isLeaf && !isPromiseLike(value)) return plan.complete(this, value, undefined);
    } catch (error) {
      return this.#fail(error, plan, { prev, key: plan.key });
    }
    return this.shown(value, plan.complete, plan, { prev, key: plan.key });
  }

  /** The value in the result, or null with its error recorded. @throws if null is not allowed */
  shown(value: unknown, complete: Complete, about: Failing, path: Path): unknown {
    try {
      if (isPromiseLike(value)) return this.#whenReady(value, complete, about, path);
      const completed = complete(this, value, path);
      if (!(completed instanceof Promise)) return completed;
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

  #fail(thrown: unknown, { info, isNonNull }: Failing, path: Path): null {
    const error = locatedError(thrown, info.fieldNodes, responsePathAsArray(path as never));
    if (isNonNull) throw error;
    this.#add(error, path);
    return null;
  }

  #add(error: GraphQLError, path: Path | undefined): void {
    for (let at = path; at; at = at.prev) if (this.#nulled.has(at)) return;
    if (this.#nulled.has(undefined)) return;
    this.#nulled.add(path);
    this.errors.push(error);
  }
}

function argumentsOf({ field, info }: FieldPlan, values: VariableValues) {
  if (field.args.length === 0) return noArguments;
  return getArgumentValues(field, info.fieldNodes[0] as FieldNode, values);
}

const noArguments: Readonly<Record<string, unknown>> = Object.freeze({});

type Fields = Record<string, unknown>;

/** The field that an error is located at, and whether it also fails the parent. */
type Failing = Pick<FieldPlan, "info" | "isNonNull">;

/** Ignores how promises end that are no longer awaited. */
function leave(values: readonly unknown[] = []): void {
  for (const value of values) if (value instanceof Promise) value.catch(() => {});
}

function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

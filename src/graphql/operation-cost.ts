import {
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isInterfaceType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";

/** The cost of a field, as declared in its `extensions`. */
export interface CostExtensions {
  /** Default: 10 for fields of the root types, 1 for other fields with objects, 0 for scalars. */
  readonly cost?: number;
  /** Most objects that the field returns: a number, or the argument that sets it. Default: 1. */
  readonly listSize?: number | { readonly argument: string; readonly byDefault: number };
}

/** The cost of a field that calls the upstream. */
export const upstreamCallCost = 10;

/**
 * The highest possible cost of an operation: 1 for each object and 10 for each upstream call, times
 * the lengths of the lists that contain them. Scalars cost nothing.
 */
export function costOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): number {
  const known = costs.get(operation);
  if (known !== undefined) return known;
  const { cost, isOfVariables } = countCost(schema, document, operation, variables);
  if (!isOfVariables) costs.set(operation, cost);
  return cost;
}

/** Costs that depend on no variable. Freed with their documents. */
const costs = new WeakMap<OperationDefinitionNode, number>();

function countCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): { readonly cost: number; readonly isOfVariables: boolean } {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      fragments.set(definition.name.value, definition);
    }
  }
  const given: VariableOf = (name) => {
    isOfVariables = true;
    return Object.hasOwn(variables, name) ? variables[name] : defaultOf(operation, name);
  };
  const root = schema.getRootType(operation.operation);
  const ofFragments = new Map<string, number>();
  let isOfVariables = false;

  function below(selections: SelectionSetNode | undefined, typeName: string): number {
    let cost = 0;
    for (const selection of selections?.selections ?? []) {
      if (selection.kind === Kind.FIELD) cost += ofField(selection, typeName);
      else if (selection.kind === Kind.INLINE_FRAGMENT) {
        cost += below(selection.selectionSet, selection.typeCondition?.name.value ?? typeName);
      } else cost += ofFragment(selection.name.value);
    }
    return cost;
  }

  /** Each fragment is counted once and added wherever it is spread. */
  function ofFragment(name: string): number {
    const fragment = fragments.get(name);
    if (!fragment) return 0;
    const known = ofFragments.get(name);
    if (known !== undefined) return known;
    const cost = below(fragment.selectionSet, fragment.typeCondition.name.value);
    ofFragments.set(name, cost);
    return cost;
  }

  function ofField(node: FieldNode, typeName: string): number {
    const type = schema.getType(typeName);
    const field =
      isObjectType(type) || isInterfaceType(type) ? type.getFields()[node.name.value] : undefined;
    if (!field) return 0; // `__typename` and its like.
    const result = getNamedType(field.type);
    const { cost, listSize } = field.extensions as CostExtensions;
    const own = cost ?? (type === root ? upstreamCallCost : isCompositeType(result) ? 1 : 0);
    return own + lengthOf(listSize, field, node, given) * below(node.selectionSet, result.name);
  }

  const cost = root ? below(operation.selectionSet, root.name) : 0;
  return { cost, isOfVariables };
}

type VariableOf = (name: string) => unknown;

function lengthOf(
  listSize: CostExtensions["listSize"],
  field: GraphQLField<unknown, unknown>,
  node: FieldNode,
  given: VariableOf,
): number {
  if (listSize === undefined) return 1;
  if (typeof listSize === "number") return listSize;
  const { argument, byDefault } = listSize;
  if (!field.args.some(({ name }) => name === argument)) {
    throw new Error(`${field.name} has no argument ${argument}`);
  }
  const value = givenValue(
    node.arguments?.find(({ name }) => name.value === argument),
    given,
  );
  // Null means the default. Any other value is rejected when the field is resolved.
  return typeof value === "number" && Number.isFinite(value) ? Math.max(0, value) : byDefault;
}

function givenValue(argument: ArgumentNode | undefined, given: VariableOf): unknown {
  if (argument?.value.kind === Kind.INT) return Number(argument.value.value);
  if (argument?.value.kind === Kind.VARIABLE) return given(argument.value.name.value);
  return undefined;
}

function defaultOf({ variableDefinitions = [] }: OperationDefinitionNode, name: string): unknown {
  const definition = variableDefinitions.find(({ variable }) => variable.name.value === name);
  const { defaultValue } = definition ?? {};
  return defaultValue?.kind === Kind.INT ? Number(defaultValue.value) : undefined;
}

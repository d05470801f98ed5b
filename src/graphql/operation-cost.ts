import {
  type DocumentNode,
  type FieldNode,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isInterfaceType,
  isObjectType,
  type OperationDefinitionNode,
  type VariableValues,
  valueFromASTUntyped,
} from "graphql";
import { measureOf } from "./root-fields.ts";

/** The cost of a field, as declared in its `extensions`. */
export interface CostExtensions {
  /**
   * Default: 10 for fields of the root types, 1 for other fields with objects, 0 for scalars. A
   * function takes the value of the argument that sets `listSize`.
   */
  readonly cost?: number | ((value: unknown) => number);
  /**
   * Most objects that the field returns: a number, or the argument that sets it, by its value or, if
   * it is a list, by its length. Default: 1.
   */
  readonly listSize?: number | { readonly argument: string; readonly byDefault: number };
}

/** The cost of a field that calls the upstream. */
export const upstreamCallCost = 10;

/**
 * The highest possible cost of an operation: 1 for each object and 10 for each upstream call, times
 * the lengths of the lists that contain them. Scalars cost nothing.
 * @param values those of its variables
 * @returns also whether it depends on them
 */
export function costOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  values: VariableValues["coerced"],
): { readonly cost: number; readonly isOfVariables: boolean } {
  let isOfVariables = false;
  const watched = new Proxy(values, {
    get(target, name) {
      isOfVariables = true;
      return Reflect.get(target, name);
    },
  });
  const root = schema.getRootType(operation.operation);
  const below = measureOf(
    document,
    (node, typeName, within) => {
      const type = schema.getType(typeName);
      const field =
        isObjectType(type) || isInterfaceType(type) ? type.getFields()[node.name.value] : undefined;
      if (!field) return 0; // `__typename` and its like.
      const result = getNamedType(field.type);
      const { cost, listSize } = field.extensions as CostExtensions;
      const size = typeof listSize === "object" ? listSize : undefined;
      const value = size && argumentOf(field, node, size.argument, watched);
      const usual = type === root ? upstreamCallCost : isCompositeType(result) ? 1 : 0;
      const own = typeof cost === "function" ? cost(value) : (cost ?? usual);
      return own + lengthOf(listSize, value) * within(node.selectionSet, result.name);
    },
    (sum, cost) => sum + cost,
  );
  const cost = root ? below(operation.selectionSet, root.name) : 0;
  return { cost, isOfVariables };
}

/** The value of the argument that sets `listSize`. */
function argumentOf(
  field: GraphQLField<unknown, unknown>,
  node: FieldNode,
  argument: string,
  values: VariableValues["coerced"],
): unknown {
  if (!field.args.some(({ name }) => name === argument)) {
    throw new Error(`${field.name} has no argument ${argument}`);
  }
  const given = node.arguments?.find(({ name }) => name.value === argument);
  return given && valueFromASTUntyped(given.value, values);
}

function lengthOf(listSize: CostExtensions["listSize"], value: unknown): number {
  if (typeof listSize !== "object") return listSize ?? 1;
  if (Array.isArray(value)) return value.length;
  // Null means the default. Any other value is rejected when the field is resolved.
  return typeof value === "number" && Number.isFinite(value)
    ? Math.max(0, value)
    : listSize.byDefault;
}

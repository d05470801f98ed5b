import {
  type ASTNode,
  type DocumentNode,
  type FieldNode,
  type GraphQLSchema,
  getNamedType,
  isInterfaceType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  type VariableValues,
  valueFromASTUntyped,
  visit,
} from "graphql";
import { collectFields, fragmentsOf } from "./compiled-operation.ts";
import { RequestError } from "./errors.ts";
import { limits } from "./limits.ts";

/**
 * Checks the limits that depend on a document alone. Runs before validation, whose own work grows
 * with the document.
 * @param introspection whether introspection is allowed
 * @throws RequestError for what is beyond a limit, INTROSPECTION_DISABLED, or an alias `__proto__`
 */
export function checkShape(document: DocumentNode, introspection: boolean): void {
  let aliases = 0;
  let introspectionAliases = 0;
  visit(document, {
    SelectionSet(set) {
      for (const { length } of collectFields(noFragments, [set]).values()) {
        if (length <= limits.repeats) continue;
        throw tooComplex(`names a field more than ${limits.repeats} times in one place`);
      }
    },
    Field(field, _key, _parent, _path, ancestors) {
      if (!introspection && metaFields.has(field.name.value)) {
        const message =
          "the schema is not told here: schema.graphql and schema.subgraph.graphql have it";
        throw new RequestError(message, "INTROSPECTION_DISABLED", { ofGraphql: true });
      }
      if (!field.alias) return;
      // As a key of a plain object, it would set the prototype.
      if (field.alias.value === "__proto__") {
        const message = "__proto__ cannot be an alias";
        throw new RequestError(message, "GRAPHQL_VALIDATION_FAILED", { ofGraphql: true });
      }
      aliases += 1;
      if ([field, ...ancestors].some(isIntrospection)) introspectionAliases += 1;
    },
  });
  if (aliases > limits.aliases) throw tooComplex(`has more than ${limits.aliases} aliases`);
  if (introspectionAliases > limits.introspectionAliases) {
    throw tooComplex(`has more than ${limits.introspectionAliases} aliases in introspection`);
  }
}

/** A selection is looked at with its inline fragments, and each other fragment by itself. */
const noFragments = new Map<string, never>();

/** Whether what is selected in a node is of the schema, rather than of its data. */
function isIntrospection(node: ASTNode | readonly ASTNode[]): boolean {
  if (!("kind" in node)) return false;
  if (node.kind === Kind.FIELD) return metaFields.has(node.name.value);
  return node.kind === Kind.FRAGMENT_DEFINITION && node.typeCondition.name.value.startsWith("__");
}

/**
 * Introspection fields, with that of a subgraph. `__typename` reveals no more than the data of a
 * response does.
 */
const metaFields: ReadonlySet<string> = new Set(["__schema", "__type", "_service"]);

/** The error for an operation beyond a limit. `how` completes "the operation …". */
export function tooComplex(how: string, ofGraphql = true): RequestError {
  return new RequestError(`the operation ${how}`, "OPERATION_TOO_COMPLEX", { ofGraphql });
}

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
 * The highest possible cost of an operation with given values of its variables: 1 for each object
 * and 10 for each upstream call, times the lengths of the lists that contain them. Scalars cost
 * nothing. Each fragment is measured once, however often it is spread.
 */
export function costOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): (values: VariableValues) => number {
  const root = schema.getRootType(operation.operation);
  const fragments = fragmentsOf(document);
  let isOfVariables = false;
  let known: number | undefined;

  function measure({ coerced }: VariableValues): number {
    const ofFragments = new Map<string, number>();

    const ofSelections = ({ selections }: SelectionSetNode, typeName: string): number =>
      selections.reduce((sum, one) => sum + ofSelection(one, typeName), 0);

    function ofSelection(selection: SelectionNode, typeName: string): number {
      if (selection.kind === Kind.FIELD) return ofField(selection, typeName);
      if (selection.kind === Kind.FRAGMENT_SPREAD) return ofFragment(selection.name.value);
      return ofSelections(selection.selectionSet, selection.typeCondition?.name.value ?? typeName);
    }

    function ofFragment(name: string): number {
      const fragment = fragments.get(name);
      let measured = ofFragments.get(name);
      if (measured === undefined && fragment) {
        measured = ofSelections(fragment.selectionSet, fragment.typeCondition.name.value);
        ofFragments.set(name, measured);
      }
      return measured ?? 0;
    }

    function ofField({ name, arguments: given, selectionSet }: FieldNode, typeName: string) {
      const type = schema.getType(typeName);
      const field =
        isObjectType(type) || isInterfaceType(type) ? type.getFields()[name.value] : undefined;
      if (!field) return 0; // `__typename` and its like.
      const { cost, listSize } = field.extensions as CostExtensions;
      const sizedBy = typeof listSize === "object" ? listSize.argument : undefined;
      const size = given?.find(({ name }) => name.value === sizedBy)?.value;
      isOfVariables ||= size !== undefined && size.kind !== Kind.INT;
      const value = size && valueFromASTUntyped(size, coerced);
      const usual = type === root ? upstreamCallCost : selectionSet ? 1 : 0;
      const own = typeof cost === "function" ? cost(value) : (cost ?? usual);
      if (!selectionSet) return own;
      return (
        own + lengthOf(listSize, value) * ofSelections(selectionSet, getNamedType(field.type).name)
      );
    }

    return root ? ofSelections(operation.selectionSet, root.name) : 0;
  }

  return (values) => {
    const cost = known ?? measure(values);
    if (!isOfVariables) known = cost;
    return cost;
  };
}

function lengthOf(listSize: CostExtensions["listSize"], value: unknown): number {
  if (typeof listSize !== "object") return listSize ?? 1;
  if (Array.isArray(value)) return value.length;
  // Null means the default. Any other value is rejected when the field is resolved.
  return typeof value === "number" && Number.isFinite(value)
    ? Math.max(0, value)
    : listSize.byDefault;
}

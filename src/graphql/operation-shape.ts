import { type DocumentNode, Kind, type SelectionSetNode, visit } from "graphql";
import { limits } from "./limits.ts";
import { RequestError } from "./request-error.ts";
import { measureOf } from "./root-fields.ts";

/**
 * Checks the limits that depend on a document alone. Runs before validation, whose own work grows
 * with the document.
 * @param introspection whether introspection is allowed
 * @throws RequestError for what is beyond a limit, INTROSPECTION_DISABLED, or an alias `__proto__`
 */
export function checkShape(document: DocumentNode, introspection: boolean): void {
  let aliases = 0;
  let introspectionAliases = 0;
  // How many enclosing nodes are introspection.
  let within = 0;
  let fragments = 0;
  visit(document, {
    SelectionSet: {
      enter(selections) {
        if (mostRepeated(selections) > limits.repeats) {
          throw tooComplex(`names a field more than ${limits.repeats} times in one place`);
        }
      },
    },
    FragmentDefinition: {
      enter({ typeCondition }) {
        fragments += 1;
        if (typeCondition.name.value.startsWith("__")) within += 1;
      },
      leave({ typeCondition }) {
        if (typeCondition.name.value.startsWith("__")) within -= 1;
      },
    },
    Field: {
      enter({ alias, name }) {
        if (metaFields.has(name.value)) {
          if (!introspection) throw introspectionDisabled();
          within += 1;
        }
        if (!alias) return;
        if (alias.value === "__proto__") throw reservedAlias();
        aliases += 1;
        if (within > 0) introspectionAliases += 1;
      },
      leave({ name }) {
        if (metaFields.has(name.value)) within -= 1;
      },
    },
  });
  if (fragments > limits.fragments) {
    throw tooComplex(`has more than ${limits.fragments} fragments`);
  }
  if (aliases > limits.aliases) throw tooComplex(`has more than ${limits.aliases} aliases`);
  if (introspectionAliases > limits.introspectionAliases) {
    throw tooComplex(`has more than ${limits.introspectionAliases} aliases in introspection`);
  }
  if (depthOf(document) > limits.depth) {
    throw tooComplex(`is nested more than ${limits.depth} fields deep`);
  }
}

/** How often a selection names a field, at most, together with its inline fragments. */
function mostRepeated({ selections }: SelectionSetNode): number {
  if (selections.length <= limits.repeats) {
    if (!selections.some(({ kind }) => kind === Kind.INLINE_FRAGMENT)) return 1;
  }
  const counts = new Map<string, number>();
  let most = 0;
  const count = (set: SelectionSetNode) => {
    for (const selection of set.selections) {
      if (selection.kind === Kind.INLINE_FRAGMENT) count(selection.selectionSet);
      if (selection.kind !== Kind.FIELD) continue;
      const name = (selection.alias ?? selection.name).value;
      const times = (counts.get(name) ?? 0) + 1;
      counts.set(name, times);
      most = Math.max(most, times);
    }
  };
  count({ selections } as SelectionSetNode);
  return most;
}

/** The error for an operation beyond a limit. `how` completes "the operation …". */
export function tooComplex(how: string, ofGraphql = false): RequestError {
  return new RequestError(`the operation ${how}`, "OPERATION_TOO_COMPLEX", { ofGraphql });
}

/**
 * Introspection fields, with that of a subgraph. `__typename` reveals no more than the data of a
 * response does.
 */
const metaFields: ReadonlySet<string> = new Set(["__schema", "__type", "_service"]);

/** As a key of a plain object, it would set the prototype. */
function reservedAlias(): RequestError {
  return new RequestError("__proto__ cannot be an alias", "GRAPHQL_VALIDATION_FAILED");
}

function introspectionDisabled(): RequestError {
  const message = "the schema is not told here: schema.graphql and schema.subgraph.graphql have it";
  return new RequestError(message, "INTROSPECTION_DISABLED");
}

function depthOf(document: DocumentNode): number {
  const below = measureOf(
    document,
    ({ name, selectionSet }, type, within) =>
      metaFields.has(name.value) ? 0 : 1 + within(selectionSet, type),
    Math.max,
  );
  const depths = document.definitions.map((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION ? below(definition.selectionSet, "") : 0,
  );
  return Math.max(0, ...depths);
}

import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type SelectionSetNode,
  visit,
} from "graphql";
import { limits } from "./limits.ts";

/**
 * Holds a document to the limits that its text alone tells: this runs before validation, whose own
 * work grows with the document.
 * @param introspection whether the schema may be asked for
 * @throws GraphQLError with OPERATION_TOO_COMPLEX or INTROSPECTION_DISABLED
 */
export function checkShape(document: DocumentNode, introspection: boolean): void {
  let aliases = 0;
  visit(document, {
    Field({ alias, name }) {
      if (alias) aliases += 1;
      if (!introspection && metaFields.has(name.value)) throw introspectionDisabled();
    },
  });
  if (aliases > limits.aliases) throw tooComplex(`has more than ${limits.aliases} aliases`);
  if (depthOf(document) > limits.depth) {
    throw tooComplex(`is nested more than ${limits.depth} fields deep`);
  }
}

/** An operation that is refused for what it would take. `how` completes "the operation …". */
export function tooComplex(how: string): GraphQLError {
  return new GraphQLError(`the operation ${how}`, {
    extensions: { code: "OPERATION_TOO_COMPLEX", http: { status: 400 } },
  });
}

/** The fields that tell about the schema; `__typename` tells no more than an answer's own data. */
const metaFields: ReadonlySet<string> = new Set(["__schema", "__type"]);

function introspectionDisabled(): GraphQLError {
  return new GraphQLError("the schema is not told here: schema.graphql has it", {
    extensions: { code: "INTROSPECTION_DISABLED", http: { status: 400 } },
  });
}

/** Each fragment is measured once, however often it is spread. */
function depthOf({ definitions }: DocumentNode): number {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      fragments.set(definition.name.value, definition);
    }
  }
  const depths = new Map<string, number>();

  function below(selections: SelectionSetNode | undefined): number {
    let deepest = 0;
    for (const selection of selections?.selections ?? []) {
      if (selection.kind === Kind.FIELD) {
        if (metaFields.has(selection.name.value)) continue;
        deepest = Math.max(deepest, 1 + below(selection.selectionSet));
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        deepest = Math.max(deepest, below(selection.selectionSet));
      } else {
        deepest = Math.max(deepest, ofFragment(selection.name.value));
      }
    }
    return deepest;
  }

  function ofFragment(name: string): number {
    const known = depths.get(name);
    if (known !== undefined) return known;
    // A cycle ends here; validation refuses it.
    depths.set(name, 0);
    const depth = below(fragments.get(name)?.selectionSet);
    depths.set(name, depth);
    return depth;
  }

  return Math.max(
    0,
    ...definitions.map((definition) =>
      definition.kind === Kind.OPERATION_DEFINITION ? below(definition.selectionSet) : 0,
    ),
  );
}

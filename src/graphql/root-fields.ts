import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from "graphql";

/**
 * The root fields of an operation, with those of its fragments, by their names in the response.
 * Each fragment is visited once, however often it is spread. `__typename`, which some clients add to
 * every selection, counts only if there is nothing else.
 */
export function rootFieldsOf(
  document: DocumentNode,
  operation: OperationDefinitionNode,
): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  const note = ({ alias, name }: FieldNode) => {
    fields.set((alias ?? name).value, name.value);
    return 0;
  };
  measureOf(document, note, Math.max)(operation.selectionSet, "");
  const asked = [...fields].filter(([, name]) => name !== "__typename");
  return asked.length > 0 ? new Map(asked) : fields;
}

/** The fragments of a document by their names. */
export function fragmentsOf({ definitions }: DocumentNode): Map<string, FragmentDefinitionNode> {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) {
    if (definition.kind !== Kind.FRAGMENT_DEFINITION) continue;
    fragments.set(definition.name.value, definition);
  }
  return fragments;
}

/**
 * Measures selections by their fields, with those of their fragments. Each fragment is measured
 * once, however often it is spread. A cycle ends where it begins again: validation refuses it.
 * @param ofField measures a field of a type; `below` measures what is selected of it
 * @param combine adds the measure of a selection to those before it
 */
export function measureOf(
  document: DocumentNode,
  ofField: (field: FieldNode, typeName: string, below: Measure) => number,
  combine: (all: number, one: number) => number,
): Measure {
  const fragments = fragmentsOf(document);
  const ofFragments = new Map<string, number>();

  const below: Measure = (selections, typeName) => {
    let all = 0;
    for (const selection of selections?.selections ?? []) {
      all = combine(all, ofSelection(selection, typeName));
    }
    return all;
  };

  function ofSelection(selection: SelectionNode, typeName: string): number {
    if (selection.kind === Kind.FIELD) return ofField(selection, typeName, below);
    if (selection.kind === Kind.FRAGMENT_SPREAD) return ofFragment(selection.name.value);
    return below(selection.selectionSet, selection.typeCondition?.name.value ?? typeName);
  }

  function ofFragment(name: string): number {
    const fragment = fragments.get(name);
    const known = ofFragments.get(name);
    if (!fragment || known !== undefined) return known ?? 0;
    ofFragments.set(name, 0);
    const measured = below(fragment.selectionSet, fragment.typeCondition.name.value);
    ofFragments.set(name, measured);
    return measured;
  }

  return below;
}

type Measure = (selections: SelectionSetNode | undefined, typeName: string) => number;

import {
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
  type VariableValues,
} from "graphql";
import type { Call } from "../core/core.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { oncePerEvent } from "../live/once-per-event.ts";
import { collectFields, compileOperation, fragmentsOf } from "./compiled-operation.ts";
import { RequestError } from "./errors.ts";
import { limits } from "./limits.ts";
import { costOf, tooComplex } from "./operation-limits.ts";
import { type Variables, valuesOf } from "./variables.ts";

export type PreparedOperation = ReturnType<typeof prepareOperation>;

/**
 * An operation of a valid document, with what is worked out about it once.
 * @param onFields called with the number of fields that are compiled, which tells their memory
 */
export function prepareOperation(
  schema: GraphQLSchema,
  document: DocumentNode,
  node: OperationDefinitionNode,
  onFields: (count: number) => void,
) {
  const { operation: type } = node;
  const fields = rootFieldsOf(document, node);
  const isAmbiguous = type === OperationTypeNode.MUTATION && fields.length > 1;
  const compiled = compileOperation(schema, document, node, onFields);
  const resultsOf = oncePerEvent(() => new Map<string, SharedResult | null>());
  const costWith = costOf(schema, document, node);

  return {
    type,
    /** The names of its root fields, each once. */
    rootFields: [...new Set(fields)].sort(),

    /**
     * The values of its variables. It is refused for them, for its cost with them, or for an
     * `Idempotency-Key`, which names one call, so there must not be several mutations.
     * @throws RequestError, or an AggregateError of them
     */
    accept(given: Variables, { idempotencyKey }: Pick<Call, "idempotencyKey">): VariableValues {
      const values = valuesOf(schema, node, given);
      if (costWith(values) > limits.cost) {
        const what = "ask for fewer objects, or less of each";
        throw tooComplex(`may cost more than ${limits.cost}: ${what}`, false);
      }
      if (idempotencyKey === undefined || !isAmbiguous) return values;
      const message = "Idempotency-Key goes with one mutation: send them one by one";
      throw new RequestError(message, "BAD_USER_INPUT");
    },

    execute: compiled.execute,
    subscribe: compiled.subscribe,

    /** How this subscription shares the results of events with identical ones. */
    resultOf(values: VariableValues): ResultOf {
      const key = JSON.stringify(values.coerced);
      return (event) => {
        const results = resultsOf(event);
        let result = results.get(key);
        if (result === undefined) {
          const data = compiled.dataAtOnce(values, { event });
          result = data ? sharedResult(data, event) : null;
          results.set(key, result);
        }
        return result ?? undefined;
      };
    },
  };
}

/**
 * The root fields of an operation, with those of its fragments, one for each name in the response.
 * `__typename`, which some clients add to every selection, counts only if there is nothing else.
 */
function rootFieldsOf(document: DocumentNode, operation: OperationDefinitionNode): string[] {
  const fields = collectFields(fragmentsOf(document), [operation.selectionSet]);
  const all = [...fields.values()].flatMap(([field]) => field?.name.value ?? []);
  const asked = all.filter((name) => name !== "__typename");
  return asked.length > 0 ? asked : all;
}

/**
 * The result of one event for all subscriptions with the same document and variables; undefined if
 * it needs a read or has an error, so that each of them executes the event.
 */
export type ResultOf = (event: Event) => SharedResult | undefined;

interface SharedResult {
  /** The result as `encode` writes it, encoded once for all of them. */
  as<Encoded>(encode: (json: string, event: Event) => Encoded): Encoded;
}

function sharedResult(data: object, event: Event): SharedResult {
  const json = JSON.stringify({ data });
  const encoded = new Map<unknown, unknown>();
  return {
    as(encode) {
      if (!encoded.has(encode)) encoded.set(encode, encode(json, event));
      return encoded.get(encode) as ReturnType<typeof encode>;
    },
  };
}

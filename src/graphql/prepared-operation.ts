import {
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
  type VariableValues,
} from "graphql";
import type { Call } from "../core/core.ts";
import { compileOperation } from "./compiled-operation.ts";
import { limits } from "./limits.ts";
import { costOf } from "./operation-cost.ts";
import { tooComplex } from "./operation-shape.ts";
import { RequestError } from "./request-error.ts";
import { rootFieldsOf } from "./root-fields.ts";
import { type ResultOf, shareResults } from "./shared-results.ts";
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
  const isAmbiguous = type === OperationTypeNode.MUTATION && fields.size > 1;
  const compiled = compileOperation(schema, document, node, onFields);
  const share = shareResults();
  /** Undefined while unknown, and if it depends on variables. */
  let knownCost: number | undefined;

  function costWith({ coerced }: VariableValues): number {
    if (knownCost !== undefined) return knownCost;
    const { cost, isOfVariables } = costOf(schema, document, node, coerced);
    if (!isOfVariables) knownCost = cost;
    return cost;
  }

  return {
    type,
    /** The names of its root fields, each once. */
    rootFields: [...new Set(fields.values())].sort(),

    /**
     * The values of its variables, or the errors with which it is refused: for them, for its cost
     * with them, or for an `Idempotency-Key`, which names one call, so there must not be several
     * mutations.
     */
    accept(
      given: Variables,
      { idempotencyKey }: Pick<Call, "idempotencyKey">,
    ): { readonly values: VariableValues } | { readonly errors: readonly GraphQLError[] } {
      const accepted = valuesOf(schema, node, given);
      if ("errors" in accepted) return accepted;
      if (costWith(accepted.values) > limits.cost) {
        const what = "ask for fewer objects, or less of each";
        return { errors: [tooComplex(`may cost more than ${limits.cost}: ${what}`)] };
      }
      if (idempotencyKey === undefined || !isAmbiguous) return accepted;
      const message = "Idempotency-Key goes with one mutation: send them one by one";
      return { errors: [new RequestError(message, "BAD_USER_INPUT", { status: 400 })] };
    },

    execute: compiled.execute,
    subscribe: compiled.subscribe,

    /** How this subscription shares the results of events with identical ones. */
    resultOf(values: VariableValues): ResultOf {
      return share(JSON.stringify(values.coerced), (event, context) =>
        compiled.dataAtOnce(values, context, { event }),
      );
    },
  };
}

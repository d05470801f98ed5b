import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  type GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from "graphql";
import type { Call } from "../core/core.ts";
import {
  compileOperation,
  compileSubscription,
  type ExecuteCompiled,
} from "./compiled-operation.ts";
import { limits } from "./limits.ts";
import type { ResultOf } from "./live.ts";
import { costOf } from "./operation-cost.ts";
import { tooComplex } from "./operation-shape.ts";
import { asRequestErrors, RequestError } from "./request-error.ts";
import { rootFieldsOf } from "./root-fields.ts";
import { type Show, shareResults } from "./shared-results.ts";
import { type Variables, valuesOf } from "./variables.ts";

export type PreparedOperation = ReturnType<typeof prepareOperation>;

/**
 * An operation of a valid document, with what is worked out about it once, when first needed.
 * @param onFields called with the number of fields that are compiled, which tells their memory
 */
export function prepareOperation(
  schema: GraphQLSchema,
  document: DocumentNode,
  node: OperationDefinitionNode,
  onFields: (count: number) => void,
) {
  const fields = rootFieldsOf(document, node);
  const isAmbiguous = node.operation === "mutation" && fields.size > 1;
  const rootFields = [...new Set(fields.values())].sort();
  const { variableDefinitions = [] } = node;
  const names = variableDefinitions.map(({ variable }) => variable.name.value);
  /** Undefined while unknown, and if it depends on variables. */
  let knownCost: number | undefined;
  let executeCompiled: ExecuteCompiled | undefined;
  let show: Show | undefined;

  function compiled(): ExecuteCompiled {
    return compileOperation(schema, document, node, onFields) ?? (() => undefined);
  }

  function costWith(given: Variables): number {
    if (knownCost !== undefined) return knownCost;
    const { cost, isOfVariables } = costOf(schema, document, node, given);
    if (!isOfVariables) knownCost = cost;
    return cost;
  }

  return {
    type: node.operation,
    /** The names of its root fields, each once. */
    rootFields,

    /**
     * The errors with which it is refused for its variables, for its cost with them, or for an
     * `Idempotency-Key`: that names one call, so there must not be several mutations.
     */
    refusalsOf(
      given: Variables,
      { idempotencyKey }: Pick<Call, "idempotencyKey">,
    ): readonly GraphQLError[] {
      const valued = valuesOf(schema, node, given);
      if ("errors" in valued) return valued.errors;
      if (costWith(given) > limits.cost) {
        const what = "ask for fewer objects, or less of each";
        return [tooComplex(`may cost more than ${limits.cost}: ${what}`)];
      }
      if (idempotencyKey === undefined || !isAmbiguous) return [];
      const message = "Idempotency-Key goes with one mutation: send them one by one";
      return [new RequestError(message, "BAD_USER_INPUT", { status: 400 })];
    },

    /**
     * Executes a query or mutation. If it cannot begin, for example because a required variable is
     * missing, the result is a request error: see `RequestErrorOptions.ofGraphql`.
     */
    execute(args: ExecutionArgs): ExecutionResult | Promise<ExecutionResult> {
      executeCompiled ??= compiled();
      const executed = executeCompiled(args);
      if (executed) return executed;
      const result = execute(args);
      if (result instanceof Promise || "data" in result || !result.errors) return result;
      return asRequestErrors(result.errors);
    },

    /** The variables that it declares. Others, up to a megabyte, would be kept with a stream. */
    declared(given: Variables): Variables {
      return Object.fromEntries(
        names.flatMap((name) => (Object.hasOwn(given, name) ? [[name, given[name]]] : [])),
      );
    },

    /** How this subscription shares the results of events with identical ones. */
    resultOf(declared: Variables): ResultOf {
      show ??= shareResults(compileSubscription(schema, document, node, onFields));
      const shared = show;
      const key = JSON.stringify(declared);
      return (event) => shared(event, key, declared);
    },
  };
}

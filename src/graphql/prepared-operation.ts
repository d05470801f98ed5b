import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  type GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from "graphql";
import {
  compileOperation,
  compileSubscription,
  type ExecuteCompiled,
} from "./compiled-operation.ts";
import { limits } from "./limits.ts";
import type { ResultOf } from "./live.ts";
import { costOf } from "./operation-cost.ts";
import { tooComplex } from "./operation-shape.ts";
import { asRequestErrors } from "./request-error.ts";
import { rootFieldsOf } from "./root-fields.ts";
import { type Show, shareResults } from "./shared-results.ts";
import { faultsOfVariables, type Variables, variablesOf } from "./variables.ts";

export interface CompileOptions {
  /** Whether operations are compiled, rather than executed by GraphQL.js alone. */
  readonly compiles: boolean;
  /** Called with the number of fields that are compiled, which tells their memory. */
  readonly onFields: (count: number) => void;
}

/** An operation of a valid document, with what is worked out about it once, when first needed. */
export class PreparedOperation {
  readonly type: OperationDefinitionNode["operation"];
  /** How many root fields it has, and their names, each once. */
  readonly rootCount: number;
  readonly rootFields: readonly string[];
  readonly #schema: GraphQLSchema;
  readonly #document: DocumentNode;
  readonly #node: OperationDefinitionNode;
  readonly #options: CompileOptions;
  readonly #variables: ReturnType<typeof variablesOf>;
  /** Undefined while unknown, and if it depends on variables. */
  #cost: number | undefined;
  #execute: ExecuteCompiled | undefined;
  #show: Show | undefined;

  constructor(
    schema: GraphQLSchema,
    document: DocumentNode,
    node: OperationDefinitionNode,
    options: CompileOptions,
  ) {
    const fields = rootFieldsOf(document, node);
    this.type = node.operation;
    this.rootCount = fields.size;
    this.rootFields = [...new Set(fields.values())].sort();
    this.#schema = schema;
    this.#document = document;
    this.#node = node;
    this.#options = options;
    this.#variables = variablesOf(schema, node);
  }

  /** The errors with which it is refused for its variables, or for its cost with them. */
  refusalsOf(given: Variables): readonly GraphQLError[] {
    const faults = faultsOfVariables(this.#variables, given);
    if (faults.length > 0 || this.#costOf(given) <= limits.cost) return faults;
    return [
      tooComplex(`may cost more than ${limits.cost}: ask for fewer objects, or less of each`),
    ];
  }

  #costOf(given: Variables): number {
    if (this.#cost !== undefined) return this.#cost;
    const { cost, isOfVariables } = costOf(this.#schema, this.#document, this.#node, given);
    if (!isOfVariables) this.#cost = cost;
    return cost;
  }

  /**
   * Executes a query or mutation. If it cannot begin, for example because a required variable is
   * missing, the result is a request error: see `RequestErrorOptions.ofGraphql`.
   */
  execute(args: ExecutionArgs): ExecutionResult | Promise<ExecutionResult> {
    this.#execute ??= this.#compile() ?? leaveToGraphql;
    const compiled = this.#execute(args);
    if (compiled) return compiled;
    const result = execute(args);
    if (result instanceof Promise || "data" in result || !result.errors) return result;
    return asRequestErrors(result.errors);
  }

  #compile(): ExecuteCompiled | undefined {
    const { compiles, onFields } = this.#options;
    return compiles
      ? compileOperation(this.#schema, this.#document, this.#node, onFields)
      : undefined;
  }

  /** How this subscription shares the results of events with identical ones. */
  resultOf(given: Variables): ResultOf {
    this.#show ??= shareResults(
      compileSubscription(this.#schema, this.#document, this.#node, this.#options.onFields),
    );
    const show = this.#show;
    const key = JSON.stringify(given);
    return (event) => show(event, key, given);
  }
}

const leaveToGraphql = () => undefined;

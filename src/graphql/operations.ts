import {
  type ExecutionResult,
  type GraphQLSchema,
  OperationTypeNode,
  type VariableValues,
} from "graphql";
import type { Context } from "./context.ts";
import { Documents } from "./documents.ts";
import { codeOf, errorsOf, type FormatError } from "./errors.ts";
import { Live } from "./live.ts";
import type { Operation } from "./operation.ts";
import type { Overload } from "./overload.ts";
import type { PreparedOperation } from "./prepared-operation.ts";
import type { Variables } from "./variables.ts";

export type Subscribed = AsyncIterableIterator<ExecutionResult> | ExecutionResult;

interface OperationsOptions {
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  readonly formatError: FormatError;
  readonly overload: Pick<Overload, "refuseOthers">;
}

export type Operations = ReturnType<typeof createOperations>;

/**
 * The steps of every operation, however it comes: HTTP and the WebSocket protocol are adapters to
 * them.
 */
export function createOperations(options: OperationsOptions) {
  const { schema, introspection, formatError, overload } = options;
  const documents = new Documents({ schema, introspection, formatError });

  /**
   * Completes an executed operation: formats its errors. The result says in its extensions if a
   * mutation got the outcome of an earlier call, and the operation when what was refused may be
   * tried again.
   */
  function ended(executed: ExecutionResult, { operation }: Context): ExecutionResult {
    const errors = executed.errors?.map((error) => {
      operation.noteRetry(error);
      return formatError(error, operation.request.acceptLanguage);
    });
    const result = errors ? { ...executed, errors } : executed;
    if (!operation.isReplay) return result;
    return { ...result, extensions: { ...result.extensions, idempotentReplayed: true } };
  }

  async function resultOf(
    prepared: PreparedOperation,
    variables: Variables,
    context: Context,
  ): Promise<Subscribed> {
    const { operation, call } = context;
    operation.asks(prepared.type, prepared.rootFields);
    const values = prepared.accept(variables, call);
    overload.refuseOthers(prepared.type, operation);
    if (prepared.type !== OperationTypeNode.SUBSCRIPTION) {
      return ended(await prepared.execute(values, context), context);
    }
    const source = prepared.subscribe(values, context);
    if (!(source instanceof Live)) return ended(source as ExecutionResult, context);
    source.resultOf = prepared.resultOf(values);
    return shownResults(source, prepared, values, context, formatError);
  }

  return {
    find: (text: string, name: string | null | undefined) => documents.find(text, name),

    /**
     * Checks an operation, records what it asks for and begins it: its result, or the results of a
     * subscription. Never rejects.
     */
    async begin(
      prepared: PreparedOperation,
      variables: Variables | null | undefined,
      context: Context,
    ): Promise<Subscribed> {
      const { operation } = context;
      let result: Subscribed;
      try {
        result = await resultOf(prepared, variables ?? {}, context);
      } catch (error) {
        result = { errors: errorsOf(error, formatError, operation.request.acceptLanguage) };
      }
      recordError(operation, result);
      return result;
    },
  };
}

/** Executes a subscription's events into results for its client, within the operation's span. */
function shownResults(
  source: Live,
  prepared: PreparedOperation,
  values: VariableValues,
  context: Context,
  formatError: FormatError,
): AsyncIterableIterator<ExecutionResult> {
  const { operation } = context;
  const show = async (): Promise<IteratorResult<ExecutionResult>> => {
    const { done, value: event } = await source.next();
    if (done) return { done, value: undefined };
    const result = await prepared.execute(values, context, event);
    recordError(operation, result);
    const { errors } = result;
    const shown = errors?.map((error) => formatError(error));
    return { value: shown ? { ...result, errors: shown } : result };
  };
  return {
    next: () => operation.request.span.run(show),
    async return() {
      await source.return();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Records the first error of a result, if there is one. It may not be masked yet. */
export function recordError(operation: Operation, result: unknown): void {
  const { errors } = (result ?? {}) as { errors?: unknown };
  if (Array.isArray(errors) && errors.length > 0) operation.failed(codeOf(errors[0]));
}

import { type ExecutionResult, OperationTypeNode } from "graphql";
import type { Context } from "./context.ts";
import { Documents, type DocumentsOptions } from "./documents.ts";
import { codeOf, errorsOf, type FormatError } from "./errors.ts";
import { type Delivery, Live } from "./live.ts";
import type { Operation } from "./operation.ts";
import type { Overload } from "./overload.ts";
import type { PreparedOperation } from "./prepared-operation.ts";
import type { Variables } from "./variables.ts";

export type Begun = Subscription | ExecutionResult;

export interface Subscription {
  readonly live: Live;
  /** Executes a delivery into a result for its client, within the operation's span. */
  show(delivery: Delivery): Promise<ExecutionResult>;
}

interface OperationsOptions extends DocumentsOptions {
  readonly formatError: FormatError;
  readonly overload: Pick<Overload, "refuseOthers">;
}

export type Operations = ReturnType<typeof createOperations>;

/**
 * The steps of every operation, however it comes: HTTP and the WebSocket protocol are adapters to
 * them.
 */
export function createOperations(options: OperationsOptions) {
  const { formatError, overload } = options;
  const documents = new Documents(options);

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
  ): Promise<Begun> {
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
    const show = async (delivery: Delivery) => {
      const result = await prepared.execute(values, context, delivery);
      recordError(operation, result);
      const errors = result.errors?.map((error) => formatError(error));
      return errors ? { ...result, errors } : result;
    };
    return {
      live: source,
      show: (delivery) => operation.request.span.run(() => show(delivery)),
    };
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
    ): Promise<Begun> {
      const { operation } = context;
      let result: Begun;
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

/** Records the first error of a result, if there is one. It may not be masked yet. */
export function recordError(operation: Operation, result: Begun): void {
  const [error] = ("errors" in result && result.errors) || [];
  if (error) operation.failed(codeOf(error));
}

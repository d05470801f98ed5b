import {
  createSourceEventStream,
  type ExecutionArgs,
  type ExecutionResult,
  executeSubscriptionEvent,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  type ValidatedSubscriptionArgs,
  validateSubscriptionArgs,
} from "graphql";
import type { Context } from "./context.ts";
import { createFindDocument, DocumentCache, type KnownDocument } from "./document-cache.ts";
import { codeOf, type FormatError } from "./errors.ts";
import type { Operation } from "./operation.ts";
import type { Overload } from "./overload.ts";
import { type PreparedOperation, prepareOperation } from "./prepared-operation.ts";
import { asRequestErrors } from "./request-error.ts";

/**
 * The steps of every operation, however it comes: HTTP and the WebSocket protocol are adapters to
 * them. The arguments of an operation have a `Context` as their `contextValue`.
 */
export interface Operations {
  /** The valid document of a text, or how it is refused. */
  find(text: string): KnownDocument;
  /** Checks a query or mutation, executes it and records its outcome. Never rejects. */
  run(args: ExecutionArgs): Promise<ExecutionResult>;
  /** Checks a subscription and begins it: its results, or one with the errors that refuse it. */
  subscribe(args: ExecutionArgs): Subscribed | Promise<Subscribed>;
}

export type Subscribed = AsyncIterableIterator<ExecutionResult> | ExecutionResult;

export interface OperationsOptions {
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  readonly formatError: FormatError;
  readonly overload: Pick<Overload, "refusalsOf">;
}

export function createOperations(options: OperationsOptions): Operations {
  const { schema, introspection, formatError, overload } = options;
  const documents = new DocumentCache();
  // Freed with their documents.
  const known = new WeakMap<OperationDefinitionNode, PreparedOperation>();

  function preparedOf({ document, operationName }: ExecutionArgs): PreparedOperation {
    const node = getOperationAST(document, operationName);
    if (!node) throw new Error("the document has no such operation");
    let prepared = known.get(node);
    if (!prepared) {
      const onFields = (count: number) => documents.addFields(document, count);
      prepared = prepareOperation(schema, document, node, onFields);
      known.set(node, prepared);
    }
    return prepared;
  }

  /** Records what is asked for. Returns the errors of an operation that is refused. */
  function refused(prepared: PreparedOperation, args: ExecutionArgs): readonly GraphQLError[] {
    const { operation, call } = contextOf(args);
    operation.asks(prepared.type, prepared.rootFields);
    const refusals = prepared.refusalsOf(args.variableValues ?? {}, call);
    return refusals.length > 0 ? refusals : overload.refusalsOf(prepared.type, operation);
  }

  /**
   * Completes an executed operation: formats its errors. The result says in its extensions if a
   * mutation got the outcome of an earlier call, and the operation when what was refused may be
   * tried again.
   */
  function ended(executed: ExecutionResult, { operation }: Context): ExecutionResult {
    const errors = executed.errors?.map((error) => {
      operation.noteRetry(error);
      return formatError(error, operation.acceptLanguage);
    });
    const result = errors ? { ...executed, errors } : executed;
    recordError(operation, result);
    if (!operation.isReplay) return result;
    return { ...result, extensions: { ...result.extensions, idempotentReplayed: true } };
  }

  return {
    find: createFindDocument(schema, introspection, formatError, documents),
    async run(args) {
      const context = contextOf(args);
      const { operation } = context;
      let result: ExecutionResult;
      try {
        const prepared = preparedOf(args);
        const errors = refused(prepared, args);
        if (errors.length === 0) return ended(await prepared.execute(args), context);
        result = { errors };
      } catch (error) {
        result = { errors: [formatError(error, operation.acceptLanguage)] };
      }
      recordError(operation, result);
      return result;
    },
    subscribe(args) {
      const context = contextOf(args);
      const { operation } = context;
      const prepared = preparedOf(args);
      const errors = refused(prepared, args);
      if (errors.length > 0) {
        recordError(operation, { errors });
        return { errors };
      }
      const variableValues = prepared.declared(args.variableValues ?? {});
      const validated = validateSubscriptionArgs({ ...args, variableValues });
      if (!("operation" in validated)) return ended(asRequestErrors(validated), context);
      const begin = (source: AsyncIterable<unknown> | ExecutionResult) => {
        if (!(Symbol.asyncIterator in source)) return ended(source, context);
        operation.live.resultOf = prepared.resultOf(variableValues);
        return shownResults(source[Symbol.asyncIterator](), validated, operation, formatError);
      };
      const source = createSourceEventStream(validated);
      return source instanceof Promise ? source.then(begin) : begin(source);
    },
  };
}

function contextOf({ contextValue }: ExecutionArgs): Context {
  return contextValue as Context;
}

/** Executes a subscription's events into results for its client, within the operation's span. */
function shownResults(
  source: AsyncIterator<unknown>,
  validated: ValidatedSubscriptionArgs,
  operation: Operation,
  formatError: FormatError,
): AsyncIterableIterator<ExecutionResult> {
  const show = async (): Promise<IteratorResult<ExecutionResult>> => {
    const { done, value: rootValue } = await source.next();
    if (done) return { done, value: undefined };
    const result = await executeSubscriptionEvent({ ...validated, rootValue });
    recordError(operation, result);
    const { errors } = result;
    const shown = errors?.map((error) => formatError(error));
    return { value: shown ? { ...result, errors: shown } : result };
  };
  return {
    next: () => operation.span.run(show),
    async return() {
      await source.return?.();
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

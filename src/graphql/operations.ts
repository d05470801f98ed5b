import {
  createSourceEventStream,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  executeSubscriptionEvent,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  type ValidatedSubscriptionArgs,
  validateSubscriptionArgs,
} from "graphql";
import { compileOperation } from "./compiled-operation.ts";
import { type Context, concluded } from "./context.ts";
import { createFindDocument, DocumentCache, type KnownDocument } from "./document-cache.ts";
import { codeOf, type FormatError } from "./errors.ts";
import { limits } from "./limits.ts";
import { costOf } from "./operation-cost.ts";
import type { OperationRecord } from "./operation-record.ts";
import { tooComplex } from "./operation-shape.ts";
import type { Overload } from "./overload.ts";
import { RequestError } from "./request-error.ts";
import { rootFieldsOf } from "./root-fields.ts";
import { resultsOf } from "./shared-results.ts";
import { faultsOfVariables } from "./variables.ts";

/**
 * The steps of every operation, however it comes: the fast path, Yoga and the WebSocket protocol
 * are adapters to them. The arguments of an operation have a `Context` as their `contextValue`.
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
  /** Whether operations are compiled, rather than executed by GraphQL.js alone. */
  readonly compiles: boolean;
}

export function createOperations(options: OperationsOptions): Operations {
  const { schema, introspection, formatError, overload, compiles } = options;
  const documents = new DocumentCache();
  const checks = [refusalsOf, ambiguityOf, overload.refusalsOf];
  // Freed with their documents.
  const executes = new WeakMap<OperationDefinitionNode, Execute>();

  /** Records what is asked for. Returns the errors of an operation that is refused. */
  function refused(args: ExecutionArgs): readonly GraphQLError[] | undefined {
    recordOperation(contextOf(args).record, args);
    for (const errorsOf of checks) {
      const errors = errorsOf(args);
      if (errors.length > 0) return errors;
    }
    return undefined;
  }

  function executeOf({ document, operationName }: ExecutionArgs): Execute {
    const operation = compiles && getOperationAST(document, operationName);
    if (!operation) return executeOperation;
    const known = executes.get(operation);
    if (known) return known;
    const compiled = compileOperation(schema, document, operation, (fields) =>
      documents.addFields(document, fields),
    );
    const execute: Execute = (args) => compiled?.(args) ?? executeOperation(args);
    executes.set(operation, execute);
    return execute;
  }

  function ended(executed: ExecutionResult, args: ExecutionArgs): ExecutionResult {
    const context = contextOf(args);
    const result = concluded(executed, context, formatError);
    recordError(context.record, result);
    return result;
  }

  return {
    find: createFindDocument({ schema, introspection, formatError, documents }),
    async run(args) {
      const { record, acceptLanguage } = contextOf(args);
      let result: ExecutionResult;
      try {
        const errors = refused(args);
        if (!errors) return ended(await executeOf(args)(args), args);
        result = { errors };
      } catch (error) {
        result = { errors: [formatError(error, acceptLanguage)] };
      }
      recordError(record, result);
      return result;
    },
    subscribe(args) {
      const { record, live } = contextOf(args);
      const errors = refused(args);
      if (errors) {
        recordError(record, { errors });
        return { errors };
      }
      const validated = validateSubscriptionArgs(args);
      if (!("operation" in validated)) return ended(requestErrors(validated), args);
      const begin = (source: AsyncIterable<unknown> | ExecutionResult) => {
        if (!(Symbol.asyncIterator in source)) return ended(source, args);
        live.resultOf = resultsOf(args, documents);
        return shownResults(source[Symbol.asyncIterator](), validated, record, formatError);
      };
      const source = createSourceEventStream(validated);
      return source instanceof Promise ? source.then(begin) : begin(source);
    },
  };
}

function contextOf({ contextValue }: ExecutionArgs): Context {
  return contextValue as Context;
}

type Execute = (args: ExecutionArgs) => ExecutionResult | Promise<ExecutionResult>;

/** Errors of a valid operation: invalid variables, or too high a cost. */
function refusalsOf(args: ExecutionArgs): readonly GraphQLError[] {
  const { schema, document, operationName, variableValues } = args;
  const operation = getOperationAST(document, operationName);
  if (!operation) return [];
  const variables = variableValues ?? {};
  const faults = faultsOfVariables(schema, operation, variables);
  if (faults.length > 0) return faults;
  if (costOf(schema, document, operation, variables) <= limits.cost) return [];
  return [tooComplex(`may cost more than ${limits.cost}: ask for fewer objects, or less of each`)];
}

/** An `Idempotency-Key` names one call, so an operation with several mutations is rejected. */
function ambiguityOf(args: ExecutionArgs): readonly GraphQLError[] {
  const { document, operationName } = args;
  if (contextOf(args).call.idempotencyKey === undefined) return [];
  const operation = getOperationAST(document, operationName);
  if (operation?.operation !== "mutation") return [];
  if (rootFieldsOf(document, operation).size < 2) return [];
  const message = "Idempotency-Key goes with one mutation: send them one by one";
  return [new RequestError(message, "BAD_USER_INPUT", { status: 400 })];
}

/**
 * Executes an operation with GraphQL.js. If it cannot begin, for example because a required
 * variable is missing, the result is a request error: see `RequestErrorOptions.ofGraphql`.
 */
function executeOperation(args: ExecutionArgs): ReturnType<typeof execute> {
  const result = execute(args);
  if (result instanceof Promise || "data" in result || !result.errors) return result;
  return requestErrors(result.errors);
}

function requestErrors(errors: readonly GraphQLError[]): ExecutionResult {
  return {
    errors: errors.map(({ message, nodes, extensions }) => {
      const http = { status: 400, spec: true };
      return new GraphQLError(message, { nodes, extensions: { ...extensions, http } });
    }),
  };
}

/** Executes a subscription's events into results for its client, within the operation's span. */
function shownResults(
  source: AsyncIterator<unknown>,
  validated: ValidatedSubscriptionArgs,
  record: OperationRecord,
  formatError: FormatError,
): AsyncIterableIterator<ExecutionResult> {
  const show = async (): Promise<IteratorResult<ExecutionResult>> => {
    const { done, value: rootValue } = await source.next();
    if (done) return { done, value: undefined };
    const result = await executeSubscriptionEvent({ ...validated, rootValue });
    recordError(record, result);
    const { errors } = result;
    const shown = errors?.map((error) => formatError(error));
    return { value: shown ? { ...result, errors: shown } : result };
  };
  return {
    next: () => record.span.run(show),
    async return() {
      await source.return?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Records the type and the root fields of an operation. */
function recordOperation(
  record: OperationRecord,
  { document, operationName }: ExecutionArgs,
): void {
  const operation = getOperationAST(document, operationName);
  if (!operation) return;
  let fields = fieldsOf.get(operation);
  if (!fields) {
    fields = [...new Set(rootFieldsOf(document, operation).values())].sort();
    fieldsOf.set(operation, fields);
  }
  record.asks(operation.operation, fields);
}

/** The root field names of each operation. Freed with their documents. */
const fieldsOf = new WeakMap<OperationDefinitionNode, readonly string[]>();

/** Records the first error of a result, if there is one. It may not be masked yet. */
export function recordError(record: OperationRecord, result: unknown): void {
  const { errors } = (result ?? {}) as { errors?: unknown };
  if (Array.isArray(errors) && errors.length > 0) record.failed(codeOf(errors[0]));
}

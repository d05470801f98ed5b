import { type ExecutionArgs, getOperationAST, type OperationDefinitionNode } from "graphql";
import type { Plugin } from "graphql-yoga";
import type { Context, Surroundings } from "./context.ts";
import { codeOf } from "./errors.ts";
import type { OperationRecord } from "./operation-record.ts";
import { rootFieldsOf } from "./root-fields.ts";

/** Fills the record of each operation, including those that are rejected before execution. */
export function observesOperations(): Plugin<Context, Surroundings> {
  return {
    onRequestParse({ request: { method }, serverContext }) {
      if (method === "GET" || method === "POST") serverContext.lifetime.record.begin();
    },
    onResultProcess({ result, serverContext }) {
      recordError(serverContext.lifetime.record, result);
    },
    onExecute({ args }) {
      const { record } = args.contextValue;
      recordOperation(record, args);
      return {
        onExecuteDone({ result }) {
          recordError(record, result);
        },
      };
    },
    onSubscribe({ args }) {
      const { record } = args.contextValue;
      recordOperation(record, args);
      return {
        onSubscribeResult({ result, setResult }) {
          if (isAsyncIterable(result)) setResult(recorded(result, record));
          else recordError(record, result);
        },
      };
    },
  };
}

/** Records the type and the root fields of an operation. */
export function recordOperation(
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

/** Wraps a stream: makes its events within the operation's span, and records their errors. */
function recorded<T>(results: AsyncIterable<T>, record: OperationRecord) {
  const iterator = results[Symbol.asyncIterator]();
  const watched: AsyncIterableIterator<T> = {
    async next() {
      const next = await record.span.run(() => iterator.next());
      if (!next.done) recordError(record, next.value);
      return next;
    },
    async return(value) {
      return iterator.return ? iterator.return(value) : { done: true, value };
    },
    [Symbol.asyncIterator]: () => watched,
  };
  return watched;
}

/** Records the first error of a result, if there is one. It may not be masked yet. */
export function recordError(record: OperationRecord, result: unknown): void {
  const { errors } = (result ?? {}) as { errors?: unknown };
  if (Array.isArray(errors) && errors.length > 0) record.failed(codeOf(errors[0]));
}

function isAsyncIterable(value: unknown): value is AsyncIterable<never> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

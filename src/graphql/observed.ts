import { type ExecutionArgs, getOperationAST, type OperationDefinitionNode } from "graphql";
import type { Plugin } from "graphql-yoga";
import type { Context, Surroundings } from "./context.ts";
import { codeOf } from "./errors.ts";
import type { OperationRecord } from "./operation-record.ts";
import { rootFieldsOf } from "./root-fields.ts";

/** Keeps the record of each operation, whatever becomes of it. */
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

/** Tells the record what an operation asks for. */
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

/** The names of the fields at the root of each operation. They go with their documents. */
const fieldsOf = new WeakMap<OperationDefinitionNode, readonly string[]>();

/** A stream whose events are made within its operation's span. */
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

/** Tells the record how an operation ended. Errors may not be masked yet. */
export function recordError(record: OperationRecord, result: unknown): void {
  const { errors } = (result ?? {}) as { errors?: unknown };
  if (Array.isArray(errors) && errors.length > 0) record.failed(codeOf(errors[0]));
}

function isAsyncIterable(value: unknown): value is AsyncIterable<never> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

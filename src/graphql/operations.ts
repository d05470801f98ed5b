import { type ExecutionResult, type GraphQLError, OperationTypeNode } from "graphql";
import { overloaded } from "../net/overloaded.ts";
import { createContext } from "./context.ts";
import type { Edge } from "./edge.ts";
import { codeOf } from "./errors.ts";
import type { Params } from "./http-params.ts";
import { type Delivery, Live } from "./live.ts";
import type { Operation } from "./operation.ts";

export type Begun = Subscription | ExecutionResult;

export interface Subscription {
  readonly live: Live;
  /** Executes a delivery into a result for its client, within the operation's span. */
  show(delivery: Delivery): Promise<ExecutionResult>;
}

/**
 * What an operation began as, or the errors of which it was refused. Records the first error of a
 * result, which may not be masked yet. Never rejects.
 * @param of has the operation as soon as it is known
 */
export async function settled<Result extends Begun | undefined>(
  { formatError }: Pick<Edge, "formatError">,
  of: { readonly operation?: Operation },
  begin: () => Promise<Result>,
): Promise<Result | ExecutionResult> {
  let result: Result | ExecutionResult;
  try {
    result = await begin();
  } catch (error) {
    const formatted = () => [formatError(error, of.operation?.request.acceptLanguage)];
    // Those in an AggregateError are formatted already.
    result = { errors: error instanceof AggregateError ? error.errors : formatted() };
  }
  if (of.operation && result) recordError(of.operation, result);
  return result;
}

function recordError(operation: Operation, result: Begun): void {
  const [error] = ("errors" in result && result.errors) || [];
  if (error) operation.failed(codeOf(error));
}

/**
 * Begins an operation, by HTTP and by the WebSocket protocol alike: its result, or the results of a
 * subscription.
 * @param ask what its request asks for, once its caller is known
 * @param check refuses types of operations that its request cannot carry
 * @throws what it is refused for
 */
export async function beginOperation(
  { core, documents, formatError, onRefused }: Edge,
  operation: Operation,
  ask: () => Params | Promise<Params>,
  check: (type: OperationTypeNode) => void = () => {},
): Promise<Begun> {
  const { slot, span, acceptLanguage } = operation.request;
  const context = await createContext(core, operation);
  const { query, variables, operationName } = await ask();
  const prepared = documents.find(query, operationName);
  check(prepared.type);
  operation.asks(prepared.type, prepared.rootFields);
  const values = prepared.accept(variables ?? {}, context.call);
  if (slot.moneyOnly && prepared.type !== OperationTypeNode.MUTATION) {
    // It was admitted only because it could move money.
    onRefused("other");
    throw new AggregateError([formatError(overloaded())]);
  }
  const begun =
    prepared.type === OperationTypeNode.SUBSCRIPTION
      ? prepared.subscribe(values, context)
      : await prepared.execute(values, context);
  if (begun instanceof Live) {
    begun.resultOf = prepared.resultOf(values);
    const show = async (delivery: Delivery) => {
      const result = await prepared.execute(values, context, delivery);
      recordError(operation, result);
      return formatted(result, formatError);
    };
    return { live: begun, show: (delivery) => span.run(() => show(delivery)) };
  }
  operation.isWhole = !("errors" in begun);
  const result = formatted(begun as ExecutionResult, (error) => {
    // When what was refused may be tried again is told in a header.
    operation.noteRetry(error);
    return formatError(error, acceptLanguage);
  });
  if (!operation.isReplay) return result;
  return { ...result, extensions: { ...result.extensions, idempotentReplayed: true } };
}

function formatted(result: ExecutionResult, format: (error: GraphQLError) => GraphQLError) {
  return result.errors
    ? { ...result, errors: result.errors.map((error) => format(error)) }
    : result;
}

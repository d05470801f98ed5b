import { type ExecutionResult, type GraphQLError, OperationTypeNode } from "graphql";
import { overloaded } from "../net/overloaded.ts";
import type { Context } from "./context.ts";
import type { Edge } from "./edge.ts";
import { codeOf, errorsOf } from "./errors.ts";
import { type Delivery, Live } from "./live.ts";
import type { Operation } from "./operation.ts";
import type { PreparedOperation } from "./prepared-operation.ts";
import type { Variables } from "./variables.ts";

export type Begun = Subscription | ExecutionResult;

export interface Subscription {
  readonly live: Live;
  /** Executes a delivery into a result for its client, within the operation's span. */
  show(delivery: Delivery): Promise<ExecutionResult>;
}

type Part = Pick<Edge, "formatError" | "onRefused">;

/**
 * Checks an operation, records what it asks for and begins it: its result, or the results of a
 * subscription. Never rejects. HTTP and the WebSocket protocol are adapters to it.
 */
export async function beginOperation(
  edge: Part,
  prepared: PreparedOperation,
  variables: Variables | null | undefined,
  context: Context,
): Promise<Begun> {
  const { operation } = context;
  let result: Begun;
  try {
    result = await resultOf(edge, prepared, variables ?? {}, context);
  } catch (error) {
    result = { errors: errorsOf(error, edge.formatError, operation.request.acceptLanguage) };
  }
  recordError(operation, result);
  return result;
}

/** Records the first error of a result, if there is one. It may not be masked yet. */
export function recordError(operation: Operation, result: Begun): void {
  const [error] = ("errors" in result && result.errors) || [];
  if (error) operation.failed(codeOf(error));
}

async function resultOf(
  { formatError, onRefused }: Part,
  prepared: PreparedOperation,
  variables: Variables,
  context: Context,
): Promise<Begun> {
  const { operation, call } = context;
  const { slot, span, acceptLanguage } = operation.request;
  operation.asks(prepared.type, prepared.rootFields);
  const values = prepared.accept(variables, call);
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

import {
  type DocumentNode,
  type ExecutionArgs,
  getOperationAST,
  type OperationDefinitionNode,
} from "graphql";
import { oncePerEvent } from "../core/once-per-event.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { compileSubscription, type ShowEvent } from "./compiled-operation.ts";
import type { DocumentCache } from "./document-cache.ts";
import type { Encode, ResultOf, SharedResult } from "./live.ts";

type Operation = Pick<ExecutionArgs, "schema" | "document" | "operationName" | "variableValues">;

/**
 * Lets identical subscriptions share the result of an event. A shared result is made of the event
 * alone: GraphQL.js executes a selection that needs more, for each client.
 * @param documents counts the memory of what is compiled
 */
export function resultsOf(
  args: Operation,
  documents?: Pick<DocumentCache, "addFields">,
): ResultOf | undefined {
  const { document, operationName, variableValues = {} } = args;
  const operation = getOperationAST(document, operationName);
  const show = operation && showOf(args, document, operation, documents);
  if (!show) return undefined;
  const variables = JSON.stringify(variableValues);
  return (event) => show(event, variables, variableValues ?? {});
}

type Show = (
  event: Event,
  key: string,
  variableValues: NonNullable<ExecutionArgs["variableValues"]>,
) => SharedResult | undefined;

/** Freed with their documents. */
const shows = new WeakMap<OperationDefinitionNode, Show | null>();

function showOf(
  { schema }: Operation,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  documents: Pick<DocumentCache, "addFields"> | undefined,
): Show | null {
  let show = shows.get(operation);
  if (show === undefined) {
    const compiled = compileSubscription(schema, document, operation, (fields) =>
      documents?.addFields(document, fields),
    );
    show = compiled ? sharing(compiled) : null;
    shows.set(operation, show);
  }
  return show;
}

function sharing(compiled: ShowEvent): Show {
  const resultsOf = oncePerEvent(() => new Map<string, SharedResult | null>());
  return (event, key, variableValues) => {
    const results = resultsOf(event);
    let result = results.get(key);
    if (result === undefined) {
      const data = compiled(event, { contextValue: nothing, variableValues });
      result = data ? new Result(JSON.stringify({ data }), event) : null;
      results.set(key, result);
    }
    return result ?? undefined;
  };
}

class Result implements SharedResult {
  readonly json: string;
  readonly #event: Event;
  readonly #encoded = new Map<unknown, unknown>();

  constructor(json: string, event: Event) {
    this.json = json;
    this.#event = event;
  }

  as<Encoded>(encode: Encode<Encoded>): Encoded {
    let encoded = this.#encoded.get(encode);
    if (encoded === undefined) {
      encoded = encode(this.json, this.#event);
      this.#encoded.set(encode, encoded);
    }
    return encoded as Encoded;
  }
}

/** A context that offers nothing: a field that needs more than the event's own data throws. */
const nothing: object = new Proxy(
  {},
  {
    get() {
      throw new Error("it is not known from the event alone");
    },
  },
);

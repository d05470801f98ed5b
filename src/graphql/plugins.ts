import {
  type DocumentNode,
  GraphQLError,
  getOperationAST,
  Kind,
  type SelectionSetNode,
} from "graphql";
import type { Plugin } from "graphql-yoga";
import type { Context, Surroundings } from "./context.ts";

type GatewayPlugin = Plugin<Context, Surroundings>;

/**
 * Reads who is calling before the body is read: a request without credentials costs nothing more.
 */
export function authenticates(): GatewayPlugin {
  return {
    async onRequestParse({ serverContext }) {
      await serverContext.authenticate();
    },
  };
}

/**
 * Takes JSON bodies only. A form is what a foreign page can make a browser send without asking
 * first.
 */
export function refusesForms(): GatewayPlugin {
  return {
    onRequestParse({ request, setRequestParser }) {
      if (/^application\/x-www-form-urlencoded/i.test(request.headers.get("content-type") ?? "")) {
        setRequestParser(undefined as never);
      }
    },
  };
}

/** Gives the errors of validation the form that all others have. */
export function formatsValidationErrors(format: (error: unknown) => GraphQLError): GatewayPlugin {
  return {
    onValidate() {
      return ({ valid, result, setResult }) => {
        if (valid) return;
        for (const { extensions } of result) extensions.code ??= "GRAPHQL_VALIDATION_FAILED";
        setResult(result.map(format));
      };
    },
  };
}

/** An `Idempotency-Key` names one call: with several mutations in one operation, none is run. */
export function refusesAmbiguousIdempotencyKey(): GatewayPlugin {
  return {
    onExecute({ args, setResultAndStopExecution }) {
      const { document, operationName, contextValue } = args;
      if (contextValue.call.idempotencyKey === undefined) return;
      const operation = getOperationAST(document, operationName);
      if (operation?.operation !== "mutation") return;
      if (rootFields(operation.selectionSet, document) < 2) return;
      setResultAndStopExecution({
        errors: [
          new GraphQLError("Idempotency-Key goes with one mutation: send them one by one", {
            extensions: { code: "BAD_USER_INPUT", http: { status: 400 } },
          }),
        ],
      });
    },
  };
}

/** Fields of a selection, with those of its fragments. Validation has refused fragment cycles. */
function rootFields(selections: SelectionSetNode, document: DocumentNode): number {
  let count = 0;
  for (const selection of selections.selections) {
    if (selection.kind === Kind.FIELD) count += 1;
    else if (selection.kind === Kind.INLINE_FRAGMENT) {
      count += rootFields(selection.selectionSet, document);
    } else {
      const fragment = document.definitions.find(
        (definition) =>
          definition.kind === Kind.FRAGMENT_DEFINITION &&
          definition.name.value === selection.name.value,
      );
      if (fragment && "selectionSet" in fragment) {
        count += rootFields(fragment.selectionSet, document);
      }
    }
  }
  return count;
}

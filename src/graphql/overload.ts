import type { IncomingMessage, ServerResponse } from "node:http";
import { type ExecutionArgs, type GraphQLError, getOperationAST } from "graphql";
import type { Plugin } from "graphql-yoga";
import { type Admission, type CallKind, freePlace, type Place } from "../limits/admission.ts";
import { suspendWhileArriving } from "../limits/arrival.ts";
import type { LimitObserver } from "../limits/observer.ts";
import { overloaded } from "../limits/overloaded.ts";
import type { Context, Surroundings } from "./context.ts";

export interface OverloadOptions {
  /** Origins whose pages may read a refusal. */
  readonly corsOrigins: readonly string[];
  readonly admission: Admission;
  readonly observer: LimitObserver;
  readonly formatError: (error: unknown) => GraphQLError;
}

/** Sheds operations that the process can't take on. */
export interface Overload {
  /** Before the body of a request is read. Undefined when it was refused, and has its answer. */
  enterByHttp(request: IncomingMessage, response: ServerResponse): Place | undefined;
  /** @throws GatewayError RESOURCE_EXHAUSTED */
  enterBySocket(): Place;
  /** Refuses what only its document shows to move no money: queries and new streams. */
  readonly plugin: Plugin<Context, Surroundings>;
}

export function createOverload(options: OverloadOptions): Overload {
  const { admission, observer, formatError, corsOrigins } = options;
  const { http, ...extensions } = formatError(overloaded()).extensions as Refusal;
  const body = JSON.stringify({ errors: [{ message: overloaded().message, extensions }] });

  function refuse(kind: CallKind): void {
    observer.onRefused(kind);
  }

  function refusalOf({ document, operationName, contextValue }: ExecutionArgs) {
    const { exchange } = contextValue as Surroundings;
    if (!exchange.place?.moneyOnly) return undefined;
    if (getOperationAST(document, operationName)?.operation === "mutation") return undefined;
    refuse("other");
    return formatError(overloaded());
  }

  return {
    enterByHttp(request, response) {
      // A preflight costs nothing, and without it a page could not read the refusal.
      if (request.method === "OPTIONS") return freePlace;
      const kind = request.method === "GET" ? "other" : "unknown";
      const place = admission.enter(kind);
      if (place) {
        suspendWhileArriving(request, place);
        return place;
      }
      refuse(kind);
      const { accept = "", origin = "" } = request.headers;
      if (corsOrigins.includes(origin)) {
        response.setHeader("access-control-allow-origin", origin);
      }
      const known = accept.includes(graphqlType) ? graphqlType : "application/json";
      response.writeHead(http.status, {
        ...http.headers,
        "content-type": `${known}; charset=utf-8`,
        "content-length": Buffer.byteLength(body),
      });
      response.end(body);
      return undefined;
    },
    enterBySocket() {
      const place = admission.enter("unknown");
      if (place) return place;
      refuse("unknown");
      throw overloaded();
    },
    plugin: {
      onExecute({ args, setResultAndStopExecution }) {
        const refused = refusalOf(args);
        if (refused) setResultAndStopExecution({ errors: [refused] });
      },
      onSubscribe({ args, setResultAndStopExecution }) {
        const refused = refusalOf(args);
        if (refused) setResultAndStopExecution({ errors: [refused] });
      },
    },
  };
}

const graphqlType = "application/graphql-response+json";

interface Refusal {
  readonly http: { readonly status: number; readonly headers: Record<string, string> };
}

import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { ExecutionArgs, GraphQLError } from "graphql";
import { CloseCode, makeServer } from "graphql-ws";
import type { YogaServerInstance } from "graphql-yoga";
import type { WebSocket } from "ws";
import type { Caller } from "../auth/caller.ts";
import type { Identify } from "../auth/identify.ts";
import { GatewayError } from "../errors.ts";
import type { Context, Surroundings } from "./context.ts";
import { initCredentialsOf } from "./credentials.ts";
import { createExchange, type Exchange } from "./exchange.ts";
import { withoutHttp } from "./formatted-result.ts";
import { limits } from "./limits.ts";
import { createLive } from "./live.ts";
import { cutIfUnread } from "./socket-flow.ts";
import type { DocumentParams } from "./trusted-documents.ts";

export interface ProtocolOptions {
  readonly yoga: YogaServerInstance<Surroundings, Context>;
  readonly identify: Identify;
  readonly formatError: (error: unknown) => GraphQLError;
  /** The text of the document that a request names. */
  readonly documentOf: (params: DocumentParams) => string | undefined;
  /** The longest that a query or a mutation may take, in milliseconds. */
  readonly timeoutMs: number;
}

/** One connection: what the protocol's hooks share. */
export interface Connection {
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
  /** Operations under way, by the client's ids. */
  readonly exchanges: Map<string, Exchange>;
  caller?: Caller;
}

/**
 * The graphql-transport-ws protocol. Operations run through Yoga, so that they have its plugins and
 * its masking of errors.
 */
export function createProtocol(options: ProtocolOptions) {
  const { yoga, identify, formatError, documentOf, timeoutMs } = options;
  return makeServer<Record<string, unknown>, Connection>({
    async onConnect({ extra, connectionParams }) {
      try {
        extra.caller = await identify(initCredentialsOf(extra.request, connectionParams));
        return true;
      } catch (error) {
        extra.socket.close(...closeOf(error, formatError));
        return false;
      }
    },

    async onSubscribe({ extra }, id, payload) {
      const { operationName, variables } = payload;
      if (extra.exchanges.size >= limits.operationsPerSocket) return [formatError(tooMany())];
      const exchange = createExchange({ requestId: randomUUID(), timeoutMs });
      extra.exchanges.set(id, exchange);
      const live = createLive(undefined);
      const isOver = () => extra.exchanges.get(id) !== exchange;
      live.failing.addEventListener("abort", () => cutIfUnread(extra.socket, isOver));
      try {
        const surroundings = { exchange, live, authenticate: async () => stillValid(extra.caller) };
        const query = documentOf(payload) ?? "";
        const params = { query, operationName, variables };
        const enveloped = yoga.getEnveloped({ ...surroundings, params } as never);
        const { schema, parse, validate, execute, subscribe, contextFactory } = enveloped;
        const document = parse(query);
        const errors = validate(schema, document);
        if (errors.length > 0) return errors as GraphQLError[];
        return {
          schema,
          document,
          operationName,
          variableValues: variables,
          contextValue: await contextFactory(),
          rootValue: { execute, subscribe },
        } as ExecutionArgs;
      } catch (error) {
        return [formatError(error)];
      }
    },

    execute: (args) => (args.rootValue as Engine).execute(args),
    subscribe: (args) => (args.rootValue as Engine).subscribe(args),

    onNext: (_, __, ___, ____, { errors, ...result }) =>
      errors && ({ ...result, errors: errors.map(withoutHttp) } as never),
    onError: ({ extra }, id, _, errors) => {
      end(extra, id);
      return errors.map((error) => withoutHttp(error as GraphQLError));
    },
    onComplete: ({ extra }, id) => end(extra, id),
    onClose: ({ extra }) => {
      for (const id of extra.exchanges.keys()) end(extra, id);
    },
  });
}

interface Engine {
  execute(args: ExecutionArgs): never;
  subscribe(args: ExecutionArgs): never;
}

function end({ exchanges }: Connection, id: string): void {
  exchanges.get(id)?.end();
  exchanges.delete(id);
}

function tooMany(): GatewayError {
  const message = `more than ${limits.operationsPerSocket} operations of one socket`;
  return new GatewayError("RESOURCE_EXHAUSTED", message, { reason: "TOO_MANY_STREAMS" });
}

/** A connection outlives its caller's token or key: each operation asks again. */
function stillValid(caller: Caller | undefined): Caller {
  caller?.revoked?.throwIfAborted();
  const expired = (caller?.expiresAtMs ?? Number.POSITIVE_INFINITY) <= Date.now();
  if (caller && !expired) return caller;
  throw new GatewayError("UNAUTHENTICATED", "the token has expired", { reason: "TOKEN_EXPIRED" });
}

/** What the protocol says of callers who are unknown or not allowed; all else may be tried again. */
function closeOf(
  error: unknown,
  formatError: (error: unknown) => GraphQLError,
): [code: number, reason: string] {
  switch (formatError(error).extensions.code) {
    case "UNAUTHENTICATED":
      return [CloseCode.Unauthorized, "Unauthorized"];
    case "FORBIDDEN":
      return [CloseCode.Forbidden, "Forbidden"];
    default:
      return [1013, "Try again later"];
  }
}

import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { ExecutionResult, GraphQLError } from "graphql";
import { CloseCode, makeServer } from "graphql-ws";
import type { WebSocket } from "ws";
import type { Caller } from "../../auth/caller.ts";
import { type Credentials, inAccount } from "../../auth/identify.ts";
import { GatewayError } from "../../errors.ts";
import { cutUnlessRead } from "../../live/reader.ts";
import type { Slot } from "../../net/admission.ts";
import { type Context, createContext } from "../context.ts";
import { initCredentialsOf } from "../credentials.ts";
import type { Edge } from "../edge.ts";
import { codeOf, shownResult, withoutHttp } from "../errors.ts";
import { limits } from "../limits.ts";
import { Operation, startOperationSpan } from "../operation.ts";
import type { Overload } from "../overload.ts";

/** The state of one connection, which the protocol's hooks share. */
export interface Connection {
  readonly socket: WebSocket;
  /** The network stream that the socket's frames are written to. */
  readonly stream: Duplex;
  readonly request: IncomingMessage;
  /** Operations in progress, by the client's ids. */
  readonly operations: Map<string, Operation>;
  /** The number of operations that wait for admission. */
  waiting: number;
  credentials?: Credentials;
  caller?: Caller;
  /** Called once its caller is known. */
  readonly onCaller: () => void;
}

/** The graphql-transport-ws protocol. */
export function createProtocol(edge: Edge) {
  const { core, schema, operations, identify, formatError, documentOf } = edge;
  const { tracing, overload } = edge;
  return makeServer<Record<string, unknown>, Connection>({
    async onConnect({ extra, connectionParams }) {
      try {
        extra.credentials = initCredentialsOf(extra.request, connectionParams);
        extra.caller = await identify(extra.credentials);
        extra.onCaller();
        return true;
      } catch (error) {
        extra.socket.close(...closeOf(error, formatError));
        return false;
      }
    },

    async onSubscribe({ extra }, id, payload) {
      const { operationName, variables } = payload;
      let slot: Slot;
      try {
        slot = await turnOf(extra, overload);
      } catch (error) {
        return [formatError(error)];
      }
      const requestId = randomUUID();
      const span = startOperationSpan(tracing, extra.request);
      const of = { connection: "websocket", streamsBy: "websocket" } as const;
      const operation = new Operation(edge, {
        ...{ ...of, requestId, span, slot },
        acceptLanguage: extra.request.headers["accept-language"] ?? null,
        authenticate: async (account) => {
          const caller = stillValid(extra.caller);
          return account === undefined ? caller : identify(inAccount(extra.credentials!, account));
        },
      });
      operation.begin();
      extra.operations.set(id, operation);
      const { live } = operation;
      const isOver = () => extra.operations.get(id) !== operation;
      live.push = (event) => {
        const { socket, stream } = extra;
        if (isOver() || socket.readyState !== socket.OPEN || stream.writableNeedDrain) return false;
        const frames = live.resultOf?.(event)?.as(nextFrames);
        if (!frames) return false;
        stream.write(frames(id));
        return true;
      };
      const { socket } = extra;
      live.onFailing = () => {
        const isUnread = () => !isOver() && socket.bufferedAmount > 0;
        const stop = cutUnlessRead(isUnread, () => socket.terminate());
        socket.once("close", stop);
      };
      const refuse = (errors: GraphQLError[]) => {
        operation.failed(codeOf(errors[0]));
        end(extra, id);
        return errors;
      };
      try {
        const { document, refused } = operations.find(documentOf(payload) ?? "");
        if (!document) return refuse(refused.errors());
        const contextValue = createContext(core, await operation.authenticate(), operation);
        return { schema, document, operationName, variableValues: variables, contextValue };
      } catch (error) {
        return refuse([formatError(error)]);
      }
    },

    execute: (args) => {
      const { span, slot } = (args.contextValue as Context).operation;
      return span.run(async () => {
        const result = await operations.run(args);
        // Give the slot back before sending: a client that does not read must not hold it.
        slot.leave();
        return result;
      });
    },
    subscribe: (args) =>
      (args.contextValue as Context).operation.span.run(() => operations.subscribe(args)),

    onNext: (_, __, ___, ____, result) => shownResult(result as ExecutionResult),
    onError: ({ extra }, id, _, errors) => {
      extra.operations.get(id)?.failed(codeOf(errors[0]));
      end(extra, id);
      return errors.map((error) => withoutHttp(error as GraphQLError));
    },
    onComplete: ({ extra }, id) => end(extra, id),
    onClose: ({ extra }) => {
      for (const [id, operation] of extra.operations) {
        operation.failed("CANCELLED");
        end(extra, id);
      }
    },
  });
}

function end({ operations }: Connection, id: string): void {
  operations.get(id)?.end();
  operations.delete(id);
}

/**
 * Waits for the admission of one more operation of a socket.
 * @throws GatewayError RESOURCE_EXHAUSTED beyond a limit, CANCELLED if the socket has closed
 */
async function turnOf(connection: Connection, overload: Overload): Promise<Slot> {
  const { socket, operations } = connection;
  if (operations.size + connection.waiting >= limits.operationsPerSocket) throw tooManyOperations();
  connection.waiting += 1;
  const slot = await overload.enterBySocket(socket).finally(() => {
    connection.waiting -= 1;
  });
  if (socket.readyState === socket.OPEN) return slot;
  slot.leave();
  throw new GatewayError("CANCELLED", "the caller went away");
}

function tooManyOperations(): GatewayError {
  const message = `more than ${limits.operationsPerSocket} operations of one socket`;
  return new GatewayError("RESOURCE_EXHAUSTED", message, { reason: "TOO_MANY_STREAMS" });
}

/**
 * Checks the caller again for each operation, since a connection can outlive a token or key.
 * @throws GatewayError UNAUTHENTICATED
 */
function stillValid(caller: Caller | undefined): Caller {
  caller?.revoked?.throwIfAborted();
  const expired = (caller?.expiresAtMs ?? Number.POSITIVE_INFINITY) <= Date.now();
  if (caller && !expired) return caller;
  throw new GatewayError("UNAUTHENTICATED", "the token has expired", { reason: "TOKEN_EXPIRED" });
}

/** The protocol's code for a caller that is unknown or not allowed; else one to try again later. */
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

/**
 * Encodes a result as a `next` message of graphql-transport-ws, in one unfragmented and unmasked
 * WebSocket frame (RFC 6455, section 5.2). Keeps the last frame, which most clients can share since
 * they use the same operation ids.
 */
function nextFrames(json: string): (id: string) => Buffer {
  let last: { readonly id: string; readonly frame: Buffer } | undefined;
  return (id) => {
    if (last?.id !== id) {
      const text = `{"id":${JSON.stringify(id)},"type":"next","payload":${json}}`;
      last = { id, frame: textFrame(text) };
    }
    return last.frame;
  };
}

const wholeText = 0x81;

function textFrame(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const headLength = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafeSlow(headLength + length);
  frame[0] = wholeText;
  if (headLength === 2) frame[1] = length;
  else if (headLength === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
  frame.write(text, headLength);
  return frame;
}

import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { ExecutionResult } from "graphql";
import {
  CloseCode,
  GRAPHQL_TRANSPORT_WS_PROTOCOL,
  MessageType,
  parseMessage,
  type SubscribePayload,
} from "graphql-ws";
import * as ws from "ws";
import { type Caller, tokenExpired } from "../../auth/caller.ts";
import type { Credentials } from "../../auth/identify.ts";
import { GatewayError } from "../../errors.ts";
import { cutUnlessRead } from "../../live/reader.ts";
import type { Slot } from "../../net/admission.ts";
import { turnOf } from "../../net/overloaded.ts";
import { leaveInTurn } from "../../net/spread-over-turns.ts";
import { startHttpSpan } from "../../telemetry/tracing/http-span.ts";
import type { Edge } from "../edge.ts";
import { limits } from "../limits.ts";
import type { Live } from "../live.ts";
import { Operation } from "../operation.ts";
import { beginOperation, settled } from "../operations.ts";
import { credentialsOf } from "./headers.ts";

/** An operation that the client has begun and that neither side has completed. */
interface Running {
  /** Undefined while it waits for admission. */
  operation?: Operation;
}

/**
 * The graphql-transport-ws protocol. A client may use an id again as soon as it has completed an
 * operation, whose end takes longer: so an operation sends and ends by its own identity, not by its
 * id, as the server of `graphql-ws` does.
 */
export function createProtocol(edge: Edge) {
  const { identify, formatError, admission, documentOf } = edge;

  /**
   * The server's side of one connection.
   * @param stream what the socket's frames are written to
   * @param onIdle called when the last operation under way is over
   */
  return (socket: ws.WebSocket, stream: Duplex, request: IncomingMessage, onIdle: () => void) => {
    /** The operations that are not completed, by the client's ids. */
    const running = new Map<string, Running>();
    /** Operations that wait or run, completed or not. */
    let underWay = 0;
    let hasInit = false;
    let credentials: Credentials | undefined;
    let caller: Caller | undefined;

    async function send(message: object): Promise<void> {
      if (socket.readyState !== socket.OPEN) return;
      const text = JSON.stringify(message);
      await new Promise<void>((resolve, reject) => {
        socket.send(text, (error) => (error ? reject(error) : resolve()));
      });
    }

    async function init(params: Readonly<Record<string, unknown>> | undefined): Promise<void> {
      if (hasInit) {
        socket.close(CloseCode.TooManyInitialisationRequests, "Too many initialisation requests");
        return;
      }
      hasInit = true;
      clearTimeout(initTimeout);
      const given = initCredentialsOf(request, params);
      try {
        caller = await identify(given);
      } catch (error) {
        const { code } = formatError(error).extensions;
        socket.close(...(closes.get(code) ?? [1013, "Try again later"]));
        return;
      }
      credentials = given;
      await send({ type: MessageType.ConnectionAck });
    }

    /** Keeps nothing of the payload, which may be large, while the operation lasts. */
    async function subscribe(id: string, payload: SubscribePayload): Promise<void> {
      if (!caller) return socket.close(CloseCode.Unauthorized, "Unauthorized");
      if (running.has(id)) {
        return socket.close(CloseCode.SubscriberAlreadyExists, "Subscriber already exists");
      }
      const own: Running = {};
      running.set(id, own);
      underWay += 1;
      return deliver(id, own, begin(id, own, payload));
    }

    async function deliver(id: string, own: Running, begun: ReturnType<typeof begin>) {
      const isOver = () => running.get(id) !== own;
      /** Sends the last message of the operation, after which its id is free. */
      const complete = async (message: object) => {
        own.operation?.end();
        if (isOver()) return;
        running.delete(id);
        await send({ id, ...message });
      };
      try {
        const result = await begun;
        if (!result || isOver()) return;
        const next = (payload: ExecutionResult) => send({ id, type: MessageType.Next, payload });
        if ("live" in result) {
          prepareLive(id, result.live, isOver);
          for await (const delivery of result.live) {
            const one = await result.show(delivery);
            if (isOver()) break;
            await next(one);
          }
        } else if ("data" in result) await next(result);
        else return await complete({ type: MessageType.Error, payload: result.errors });
        await complete({ type: MessageType.Complete });
      } finally {
        own.operation?.end();
        if (!isOver()) running.delete(id);
        underWay -= 1;
        if (underWay === 0) onIdle();
      }
    }

    /** What the operation answers with; undefined if nobody waits for it. */
    function begin(id: string, own: Running, payload: SubscribePayload) {
      return settled(edge, own, async () => {
        if (underWay > limits.operationsPerSocket) {
          const message = `more than ${limits.operationsPerSocket} operations of one socket`;
          throw new GatewayError("RESOURCE_EXHAUSTED", message, { reason: "TOO_MANY_STREAMS" });
        }
        const slot = await turnOf(admission, "unknown", socket, () => edge.onRefused("unknown"));
        if (running.get(id) !== own || socket.readyState !== socket.OPEN) {
          slot.leave();
          return undefined;
        }
        const operation = operationOf(slot);
        own.operation = operation;
        operation.begin();
        try {
          const ask = () => ({ ...payload, query: documentOf(payload) ?? "" });
          return await operation.request.span.run(() => beginOperation(edge, operation, ask));
        } finally {
          // Give the slot back before sending: a client that does not read must not hold it.
          slot.leave();
        }
      });
    }

    /** Apart from the payload: what the operation holds lasts as long as its stream. */
    function operationOf(slot: Slot): Operation {
      return new Operation(edge, {
        ...{ requestId: randomUUID(), streamsBy: "websocket", slot },
        span: startHttpSpan(edge.tracing, request, "/graphql"),
        acceptLanguage: request.headers["accept-language"] ?? null,
        authenticate: async (account) => {
          const known = stillValid(caller);
          return account === undefined ? known : identify(credentials!, account);
        },
      });
    }

    function prepareLive(id: string, live: Live, isOver: () => boolean): void {
      live.push = (event) => {
        if (isOver() || socket.readyState !== socket.OPEN || stream.writableNeedDrain) return false;
        const frames = live.resultOf?.(event)?.as(nextFrames);
        if (!frames) return false;
        stream.write(frames(id));
        return true;
      };
      const isUnread = () => !isOver() && socket.bufferedAmount > 0;
      void live.failing.then(() => cutUnlessRead(isUnread, () => socket.terminate()));
    }

    const tooLate = () => {
      const reason = "Connection initialisation timeout";
      if (!hasInit) socket.close(CloseCode.ConnectionInitialisationTimeout, reason);
    };
    // What came while the process stood still is read first.
    const initTimeout = setTimeout(() => setImmediate(tooLate), initTimeoutMs);
    if (socket.protocol !== GRAPHQL_TRANSPORT_WS_PROTOCOL) {
      socket.close(CloseCode.SubprotocolNotAcceptable, "Subprotocol not acceptable");
    }

    const closed = () => {
      clearTimeout(initTimeout);
      for (const { operation } of running.values()) operation?.end({ hasLeft: true });
      running.clear();
    };
    socket.once("close", () => leaveInTurn(closed));

    return {
      hasCaller: () => caller !== undefined,
      isIdle: () => underWay === 0,
      /** Handles a message; resolves when what it began is over. Rejects if that cannot be sent. */
      async handle(text: string): Promise<void> {
        // It could not be answered: the socket is being closed.
        if (socket.readyState !== socket.OPEN) return;
        const message = messageOf(text);
        switch (message?.type) {
          case MessageType.ConnectionInit:
            return init(message.payload);
          case MessageType.Ping:
            return send({ type: MessageType.Pong, payload: message.payload });
          case MessageType.Pong:
            return;
          case MessageType.Subscribe:
            return subscribe(message.id, message.payload);
          case MessageType.Complete: {
            const completed = running.get(message.id)?.operation;
            running.delete(message.id);
            completed?.end({ hasLeft: !completed.live?.isOpen });
            return;
          }
          default:
            // No message of a client.
            socket.close(CloseCode.BadRequest, "Invalid message received");
        }
      },
    };
  };
}

/** Headers that a `connection_init` payload may carry, in lower case. */
const initHeaders = new Set(["authorization", "x-merchant-account", "x-customer-auth"]);

/**
 * The credentials of a WebSocket. A client may send them in the payload of `connection_init`, since
 * a browser cannot set headers of the upgrade request. The payload overrides those headers.
 */
function initCredentialsOf(
  request: IncomingMessage,
  payload: Readonly<Record<string, unknown>> | undefined,
): Credentials {
  const given = new Map<string, string>();
  for (const [name, value] of Object.entries(payload ?? {})) {
    if (typeof value === "string" && initHeaders.has(name.toLowerCase())) {
      given.set(name.toLowerCase(), value);
    }
  }
  const upgrade = credentialsOf(request);
  return { ...upgrade, header: (name) => given.get(name) ?? upgrade.header(name) };
}

/** How long a client may take to send `connection_init`. */
const initTimeoutMs = 3_000;

/** An operation's id is kept while it lasts, and sent with each result. */
const maxIdLength = 255;

/** Undefined if it is none of the protocol's messages, or has too long an id. */
function messageOf(text: string): ReturnType<typeof parseMessage> | undefined {
  try {
    const message = parseMessage(text);
    return "id" in message && message.id.length > maxIdLength ? undefined : message;
  } catch {
    return undefined;
  }
}

/**
 * Checks the caller again for each operation, since a connection can outlive a token or key.
 * @throws GatewayError UNAUTHENTICATED
 */
function stillValid(caller: Caller | undefined): Caller {
  caller?.revoked?.throwIfAborted();
  const expired = (caller?.expiresAtMs ?? Number.POSITIVE_INFINITY) <= Date.now();
  if (caller && !expired) return caller;
  throw tokenExpired();
}

/** The protocol's codes for a caller that is unknown or not allowed. */
const closes: ReadonlyMap<unknown, [code: number, reason: string]> = new Map([
  ["UNAUTHENTICATED", [CloseCode.Unauthorized, "Unauthorized"]],
  ["FORBIDDEN", [CloseCode.Forbidden, "Forbidden"]],
]);

/**
 * Encodes a result as a `next` message of graphql-transport-ws, in one unfragmented and unmasked
 * frame. Keeps the last frame, which most clients can share since they use the same operation ids.
 */
function nextFrames(json: string): (id: string) => Buffer {
  let last: { readonly id: string; readonly frame: Buffer } | undefined;
  return (id) => {
    if (last?.id !== id) {
      const text = `{"id":${JSON.stringify(id)},"type":"next","payload":${json}}`;
      last = { id, frame: Buffer.concat(Sender.frame(Buffer.from(text), wholeText)) };
    }
    return last.frame;
  };
}

/** A public function of `ws` that its types leave out. */
const { Sender } = ws as unknown as {
  Sender: { frame(data: Buffer, options: typeof wholeText): Buffer[] };
};

/** The opcode of a text is 1 (RFC 6455, section 5.2). */
const wholeText = { fin: true, opcode: 1, mask: false, readOnly: true };

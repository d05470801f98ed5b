import { once } from "node:events";
import type { TestContext } from "node:test";
import { type Client, type ClientOptions, createClient, type SubscribePayload } from "graphql-ws";
import WebSocket from "ws";
import { until } from "../until.ts";
import type { Answer, Served } from "./serve.ts";

/** A client of graphql-ws, which is disposed of after the test. */
export function socketClient(
  t: TestContext,
  { wsUrl }: Pick<Served, "wsUrl">,
  options: Partial<ClientOptions> = {},
): Client {
  const usual = { url: wsUrl, webSocketImpl: WebSocket, retryAttempts: 0 };
  const client = createClient({ ...usual, ...options });
  t.after(() => client.dispose());
  return client;
}

/** The first result of an operation, or the errors with which it was refused. */
export async function firstResult(client: Client, payload: SubscribePayload): Promise<Answer> {
  try {
    return (await client.iterate(payload).next()).value;
  } catch (errors) {
    return { errors };
  }
}

interface Message {
  readonly id?: string;
  readonly type: string;
  readonly payload?: Answer;
}

/** A client that, after connection_init unless `mute`, sends only what the test tells it to send. */
export async function rawSocket(
  t: TestContext,
  { wsUrl }: Pick<Served, "wsUrl">,
  { mute = false, ...options }: WebSocket.ClientOptions & { readonly mute?: boolean } = {},
) {
  const socket = new WebSocket(wsUrl, "graphql-transport-ws", options);
  socket.on("error", () => undefined);
  t.after(() => socket.terminate());
  const messages: Message[] = [];
  const send = (message: Message) => socket.send(JSON.stringify(message));
  await once(socket, "open");
  if (!mute) {
    send({ type: "connection_init" });
    await once(socket, "message");
  }
  socket.on("message", (data) => messages.push(JSON.parse(String(data))));
  const subscribe = (query: string, id = "1") =>
    send({ id, type: "subscribe", payload: { query } });
  /** Resolves with the first message of a type that has come, or comes. */
  const message = (type: string) => until(() => messages.find((one) => one.type === type));
  return { socket, messages, send, subscribe, message };
}

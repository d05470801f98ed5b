import http from "node:http";
import net from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import WebSocket from "ws";
import {
  StreamEventsRequestSchema,
  StreamEventsResponseSchema,
} from "../../src/gen/payments/v1/event_service_pb.ts";

/** A client of the stream of all events that can stop reading. */
export interface SlowClient {
  readonly cursors: string[];
  /** The local port of its connection, once that is open. */
  readonly localPort: number | undefined;
  /** Stops reading from its connection. */
  pause(): void;
  resume(): void;
  /** How the stream ended: the code that it received, else `reset <code>`, else `cut`. */
  readonly ended: Promise<{ code: string; resumeCursor?: string | undefined }>;
  close(): void;
}

export interface Urls {
  readonly publicUrl: string;
  readonly rpcUrl: string;
}

/**
 * Functions that open a client, by transport; `after` is a cursor. One for each way to cut a client:
 * test/rpc/streams.test.ts has that of HTTP/2.
 */
export const transports: Readonly<Record<string, (urls: Urls, after?: string) => SlowClient>> = {
  SSE: overSse,
  WebSocket: overWebSocket,
  Connect: overConnect,
};

type Ended = Awaited<SlowClient["ended"]>;

/** Requests `payload`, which makes each event large. */
const queryOf = (after: string | undefined) =>
  `subscription { events${after === undefined ? "" : `(after: "${after}")`} {
    cursor ... on PaymentEvent { payment { details { payload } } }
  } }`;

function overSse({ publicUrl }: Urls, after?: string): SlowClient {
  const state = newState();
  const body = JSON.stringify({ query: queryOf(after) });
  const request = http.request(`${publicUrl}/graphql`, {
    method: "POST",
    agent: false,
    headers: { accept: "text/event-stream", "content-type": "application/json" },
  });
  request.end(body);
  let text = "";
  request.on("response", (response) => {
    response.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const data = /^data: (.*)$/m.exec(block)?.[1];
        if (data) state.result(JSON.parse(data));
      }
    });
    response.on("error", () => undefined).on("close", () => state.end({ code: "cut" }));
  });
  request.on("error", () => state.end({ code: "cut" }));
  return state.client(
    () => request.socket,
    () => request.destroy(),
  );
}

function overWebSocket({ publicUrl }: Urls, after?: string): SlowClient {
  const state = newState();
  let tcp: net.Socket | undefined;
  const socket = new WebSocket(
    `${publicUrl.replace("http", "ws")}/graphql`,
    "graphql-transport-ws",
    {
      createConnection(options: object) {
        tcp = net.connect(options as net.NetConnectOpts);
        return tcp;
      },
    } as WebSocket.ClientOptions,
  );
  socket.on("open", () => socket.send('{"type":"connection_init"}'));
  socket.on("error", () => undefined).on("close", () => state.end({ code: "cut" }));
  socket.on("message", (data) => {
    const { type, payload } = JSON.parse(String(data));
    if (type === "connection_ack") {
      const query = queryOf(after);
      socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query } }));
    } else if (type === "next") state.result(payload);
    else if (type === "error") state.result({ errors: payload });
  });
  return state.client(
    () => tcp,
    () => socket.terminate(),
  );
}

function overConnect({ rpcUrl }: Urls, after?: string): SlowClient {
  const state = newState();
  const request = http.request(`${rpcUrl}${path}`, {
    method: "POST",
    agent: false,
    headers: { "content-type": "application/connect+proto" },
  });
  request.end(envelope(after));
  request.on("response", (response) => {
    const read = readEnvelopes(state);
    response.on("data", read);
    response.on("error", () => undefined).on("close", () => state.end({ code: "cut" }));
  });
  request.on("error", () => state.end({ code: "cut" }));
  return state.client(
    () => request.socket,
    () => request.destroy(),
  );
}

const path = "/payments.v1.EventService/StreamEvents";
const exhausted = "RESOURCE_EXHAUSTED";

function envelope(after: string | undefined): Buffer {
  const message = create(
    StreamEventsRequestSchema,
    after === undefined ? {} : { afterCursor: after },
  );
  const bytes = toBinary(StreamEventsRequestSchema, message);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function readEnvelopes(state: State): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const flags = rest[0] ?? 0;
      const bytes = rest.subarray(5, 5 + rest.readUInt32BE(1));
      rest = rest.subarray(5 + bytes.length);
      if (flags === 0) state.cursor(fromBinary(StreamEventsResponseSchema, bytes).event?.cursor);
      else state.end(endOf(String(bytes)));
    }
  };
}

/** Parses the last envelope of a stream. */
function endOf(text: string): Ended {
  const { error, metadata } = JSON.parse(text);
  return {
    code: String(error?.code).toUpperCase(),
    resumeCursor: metadata?.["x-resume-cursor"]?.[0],
  };
}

type State = ReturnType<typeof newState>;

interface Connection {
  readonly localPort?: number | undefined;
  pause(): unknown;
  resume(): unknown;
}

function newState() {
  const ended = Promise.withResolvers<Ended>();
  const cursors: string[] = [];
  const cursor = (cursor = "") => void cursors.push(cursor);
  return {
    end: (how: Ended) => ended.resolve(how),
    cursor,
    // biome-ignore lint/suspicious/noExplicitAny: a result as it came
    result({ data, errors }: any) {
      if (data) return cursor(data.events.cursor);
      const { code, resumeCursor } = errors[0].extensions;
      ended.resolve({ code: code === "RATE_LIMITED" ? exhausted : code, resumeCursor });
    },
    client(connection: () => Connection | null | undefined, close: () => void): SlowClient {
      return {
        cursors,
        get localPort() {
          return connection()?.localPort;
        },
        ended: ended.promise,
        pause: () => connection()?.pause(),
        resume: () => connection()?.resume(),
        close,
      };
    },
  };
}

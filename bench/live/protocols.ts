/** The bytes with which a watcher of each protocol opens its watch, all made before measuring. */
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { WatchPaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import type { Step } from "./watchers.ts";

export type ProtocolName = "graphql-sse" | "graphql-ws" | "watch-sse" | "grpc" | "connect";

export interface Protocol {
  /** The listener that serves the protocol. */
  readonly at: "public" | "rpc";
  /** Opens `streams` watches on one connection; protocols that allow only one ignore the number. */
  readonly steps: (externalId: string, streams: number) => readonly Step[];
}

const selection = `cursor externalId payment { operation isSuccess
  details { status statusCode amount currency payload } }`;
const query = `subscription S($e: ID!) { paymentUpdated(externalId: $e) { ${selection} } }`;
const path = "/payments.v1.PaymentService/WatchPayment";

const step = (send: string | Buffer, awaits: string | Buffer = "", times = 1): Step => ({
  ...{ send: Buffer.from(send), awaits: Buffer.from(awaits), times },
});
const endOfHead = "\n\r\n";

const get = (target: string, headers: Readonly<Record<string, string>> = {}) =>
  request("GET", target, { accept: "text/event-stream", ...headers });

function request(
  method: string,
  target: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array = Buffer.of(),
): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `${method} ${target} HTTP/1.1\r\nhost: 127.0.0.1\r\n${lines.join("")}\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/** A text frame of a WebSocket client, masked with zeros. */
function textFrame(message: object): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const head = Buffer.from([0x81, 0x80 | 126, body.length >> 8, body.length & 255, 0, 0, 0, 0]);
  return Buffer.concat([head, body]);
}

/** A message with the five-byte prefix of Connect and gRPC. */
function enveloped<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): Buffer {
  const message = toBinary(schema, create(schema, init));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

const frameTypes = { data: 0, headers: 1, settings: 4, windowUpdate: 8 } as const;

function http2Frame(
  type: keyof typeof frameTypes,
  flags: number,
  stream: number,
  body: Uint8Array,
) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(body.length, 0, 3);
  head[3] = frameTypes[type];
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, body]);
}

/** An HPACK literal header, uncompressed. */
function literal([name, value]: [string, string]): Buffer {
  const texts = [Buffer.from(name), Buffer.from(value)];
  return Buffer.concat([Buffer.of(0), ...texts.flatMap((text) => [Buffer.of(text.length), text])]);
}

const uint32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const greatest = 0x7fff_ffff;
/** Sets windows so large that no later window updates are needed. */
const preface = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  http2Frame("settings", 0, 0, Buffer.concat([Buffer.of(0, 4), uint32(greatest)])),
  http2Frame("windowUpdate", 0, 0, uint32(greatest - 65_535)),
]);
const grpcHeaders = Buffer.concat(
  Object.entries({
    ...{ ":method": "POST", ":scheme": "http", ":path": path, ":authority": "127.0.0.1" },
    ...{ "content-type": "application/grpc", te: "trailers" },
  }).map(literal),
);

export const protocols: Readonly<Record<ProtocolName, Protocol>> = {
  "graphql-sse": {
    at: "public",
    steps(externalId) {
      const search = new URLSearchParams({ query, variables: JSON.stringify({ e: externalId }) });
      return [step(get(`/graphql?${search}`), endOfHead)];
    },
  },
  "graphql-ws": {
    at: "public",
    steps(externalId, streams) {
      const upgrade = request("GET", "/graphql", {
        ...{ upgrade: "websocket", connection: "Upgrade", "sec-websocket-version": "13" },
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-protocol": "graphql-transport-ws",
      });
      const payload = { query, variables: { e: externalId } };
      const subscriptions = Array.from({ length: streams }, (_, i) =>
        textFrame({ id: `${i}`, type: "subscribe", payload }),
      );
      return [
        step(upgrade, endOfHead),
        step(textFrame({ type: "connection_init", payload: {} }), "connection_ack"),
        // The server sends nothing before the first event.
        step(Buffer.concat(subscriptions)),
      ];
    },
  },
  "watch-sse": {
    at: "public",
    steps: (externalId) => [step(get(`/watch/payments/${externalId}`), endOfHead)],
  },
  grpc: {
    at: "rpc",
    steps(externalId, streams) {
      const message = enveloped(WatchPaymentRequestSchema, { externalId });
      const requests = Array.from({ length: streams }, (_, i) => [
        http2Frame("headers", 4, 2 * i + 1, grpcHeaders),
        http2Frame("data", 1, 2 * i + 1, message),
      ]).flat();
      return [
        step(preface, Buffer.of(frameTypes.settings, 0, 0, 0, 0, 0)),
        // A watch is open when the response headers of its stream arrive.
        step(
          Buffer.concat([http2Frame("settings", 1, 0, Buffer.of()), ...requests]),
          Buffer.of(frameTypes.headers, 4, 0, 0),
          streams,
        ),
      ];
    },
  },
  connect: {
    at: "rpc",
    steps(externalId) {
      const body = enveloped(WatchPaymentRequestSchema, { externalId });
      const headers = {
        ...{ "content-type": "application/connect+proto", "connect-protocol-version": "1" },
        "content-length": `${body.length}`,
      };
      return [step(request("POST", path, headers, body), endOfHead)];
    },
  },
};

/** A plain watch by each socket of its own payment, which resumes after the last event received. */
export function resumingSteps(
  prefix: string,
  headers: Readonly<Record<string, string>> = {},
): readonly Step[] {
  const path = `/watch/payments/${prefix}{n}`;
  const watch = get(path, { ...headers, "last-event-id": "{cursor}" });
  return [step(watch, " 200 "), step("", "x-request-id"), step("", endOfHead)];
}

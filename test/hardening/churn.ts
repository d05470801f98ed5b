import { once } from "node:events";
import http2 from "node:http2";
import WebSocket from "ws";
import type { Gateway } from "../../src/app/gateway.ts";
import { ask, connected, opened } from "../ask.ts";
import { dataOf, paymentInput } from "../gateway/callers.ts";
import { envelope, http2Call } from "../rpc/start.ts";
import { until } from "../until.ts";

const json = { "content-type": "application/json" };
const service = "/payments.v1.PaymentService";
/** A payment that exists, so that every watch delivers an event at once. */
const externalId = "churn";
const subscription = `subscription { paymentUpdated(externalId: "${externalId}") { cursor } }`;

/** Clients that disconnect in the middle of calls, uploads and streams. */
export async function createChurn(gateway: Gateway) {
  const mutation = `mutation { createPayment(input: ${paymentInput(externalId)}) { __typename } }`;
  await dataOf(gateway, mutation, { headers: { connection: "close" } });

  const kinds = [unary, rpcStream, upload, sse, webSocket, callback];
  return {
    /** Starts and breaks off calls, uploads and streams, `n` of each kind. */
    async run(n: number) {
      for (let done = 0; done < n; done += atOnce) {
        const batch = Math.min(atOnce, n - done);
        const all = kinds.flatMap((kind) => Array.from({ length: batch }, () => kind(gateway)));
        await Promise.all(all);
      }
    },
    /** Opens a stream, until `end`. */
    async openStream() {
      const session = http2.connect(gateway.rpcUrl);
      await begin(session.request(watchRequest));
      return { end: () => session.destroy() };
    },
  };
}

const atOnce = 10;

async function unary({ rpcUrl }: Gateway): Promise<void> {
  const session = http2.connect(rpcUrl);
  const stream = session.request(http2Call());
  stream.on("error", () => {});
  stream.end(JSON.stringify({ external_id: externalId }), () => {
    stream.close(http2.constants.NGHTTP2_CANCEL);
  });
  await once(stream, "close");
  await new Promise<void>((resolve) => session.close(resolve));
}

async function rpcStream({ rpcUrl }: Gateway): Promise<void> {
  const session = http2.connect(rpcUrl);
  const stream = session.request(watchRequest);
  await begin(stream);
  stream.close(http2.constants.NGHTTP2_CANCEL);
  await once(stream, "close");
  await new Promise<void>((resolve) => session.close(resolve));
}

const watchRequest = http2Call("WatchPayment", { "content-type": "application/connect+json" });

/** Sends the request of a watch, and waits for its first message. */
async function begin(stream: http2.ClientHttp2Stream): Promise<void> {
  stream.on("error", () => {});
  stream.end(envelope(JSON.stringify({ external_id: externalId })));
  await once(stream, "data");
}

async function upload({ rpcUrl }: Gateway): Promise<void> {
  await breakOff(rpcUrl, `POST ${service}/GetPayment HTTP/1.1\r\nHost: x\r\n${uploadHead}`);
}

async function callback({ publicUrl }: Gateway): Promise<void> {
  const path = "/callbacks/default/payments";
  await breakOff(
    publicUrl,
    `POST ${path} HTTP/1.1\r\nHost: x\r\nx-service-signature: x\r\n${uploadHead}`,
  );
}

const uploadHead = "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{";

async function breakOff(url: string, begun: string): Promise<void> {
  const socket = await connected({ after() {} }, url);
  await new Promise((resolve) => socket.write(begun, resolve));
  socket.resetAndDestroy();
  await once(socket, "close");
}

async function sse({ publicUrl }: Gateway): Promise<void> {
  const headers = { ...json, accept: "text/event-stream" };
  const body = JSON.stringify({ query: subscription });
  const { request, response } = await opened(`${publicUrl}/graphql`, {
    ...{ method: "POST", headers, body },
  });
  request.on("error", () => {});
  response.on("error", () => {});
  await once(response, "data");
  request.destroy();
  await once(request, "close");
}

async function webSocket({ publicUrl }: Gateway): Promise<void> {
  const socket = new WebSocket(
    `${publicUrl.replace("http", "ws")}/graphql`,
    "graphql-transport-ws",
  );
  socket.on("error", () => {});
  await once(socket, "open");
  socket.send('{"type":"connection_init"}');
  await once(socket, "message");
  socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query: subscription } }));
  await once(socket, "message");
  socket.terminate();
  await once(socket, "close");
}

/** Resources of the process that a leak would increase. */
export async function inUseBy({ adminUrl }: Gateway) {
  const { socket, text: metrics } = await ask(`${adminUrl}/metrics`);
  if (!socket.closed) await once(socket, "close");
  const callsInFlight = Number(/^payments_gateway_calls_in_flight (\d+)$/m.exec(metrics)?.[1]);
  const sockets = process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap");
  return { sockets: sockets.length, callsInFlight };
}

/** Resolves when the gateway holds no more than `before`. */
export function settled(
  gateway: Gateway,
  before: Awaited<ReturnType<typeof inUseBy>>,
): Promise<unknown> {
  return until(async () => {
    const { sockets, callsInFlight } = await inUseBy(gateway);
    return sockets <= before.sockets && callsInFlight <= before.callsInFlight;
  }, "it holds no more");
}

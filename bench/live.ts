/**
 * How many events a second one gateway delivers to 500 subscribers, and what one delivery costs it.
 * The gateway is a process of its own; the subscribers only count what they get.
 * Run: `node bench/live.ts`, or with names of transports: `node bench/live.ts SSE`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { createInterface } from "node:readline";
import WebSocket from "ws";
import { sign } from "../src/wire/signature.ts";

const subscribers = 500;
const events = 200;

const free = "127.0.0.1:0";
const query = `subscription { events { __typename cursor kind source final
  ... on PaymentEvent { payment { externalId operation details { amount status paymentId } } } } }`;

interface Running {
  readonly child: ChildProcess;
  readonly urls: Record<string, string>;
}

async function start(): Promise<Running> {
  const cli = new URL("../src/cli.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [cli, "serve"], {
    env: {
      PATH: process.env.PATH,
      PUBLIC_ADDR: free,
      RPC_ADDR: free,
      ADMIN_ADDR: free,
      SANDBOX_ADDR: free,
      LOG_LEVEL: "info",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface(child.stdout)) {
    const message = line.startsWith("{") ? String(JSON.parse(line).msg) : line;
    if (!message.startsWith("ready ")) continue;
    const pairs = message.split(" ").slice(1);
    child.stdout.resume();
    return { child, urls: Object.fromEntries(pairs.map((pair) => pair.split("="))) };
  }
  throw new Error("the gateway did not start");
}

/** Opens one subscription; `delivered` hears of so many events at a time. */
type Subscribe = (urls: Record<string, string>, delivered: (count: number) => void) => void;

const transports: Record<string, () => Subscribe> = {
  SSE: () => (urls, delivered) => {
    const request = http.request(`${urls.public}/graphql`, {
      method: "POST",
      agent: false,
      headers: { accept: "text/event-stream", "content-type": "application/json" },
    });
    request.end(JSON.stringify({ query }));
    request.on("response", (response) => {
      response.on("data", (chunk: Buffer) => delivered(countOf(chunk, "event: next")));
    });
    request.on("error", () => undefined);
  },
  WebSocket: () => (urls, delivered) => {
    const url = `${urls.public?.replace("http", "ws")}/graphql`;
    const socket = new WebSocket(url, "graphql-transport-ws");
    socket.on("open", () => socket.send('{"type":"connection_init"}'));
    socket.on("message", (data: Buffer) => {
      if (data.includes('"connection_ack"')) {
        socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query } }));
      } else if (data.includes('"next"')) delivered(1);
    });
    socket.on("error", () => undefined);
  },
  gRPC: () => {
    let session: http2.ClientHttp2Session | undefined;
    return (urls, delivered) => {
      session ??= http2.connect(urls.rpc ?? "").on("error", () => undefined);
      const stream = session.request({
        ":method": "POST",
        ":path": "/payments.v1.EventService/StreamEvents",
        "content-type": "application/grpc+proto",
        te: "trailers",
      });
      stream.end(Buffer.alloc(5));
      const count = countEnvelopes();
      stream.on("data", (chunk: Buffer) => delivered(count(chunk)));
      stream.on("error", () => undefined);
    };
  },
};

function countOf(chunk: Buffer, text: string): number {
  let count = 0;
  for (let at = chunk.indexOf(text); at >= 0; at = chunk.indexOf(text, at + 1)) count += 1;
  return count;
}

/** Counts messages of gRPC, which chunks may split anywhere. */
function countEnvelopes(): (chunk: Buffer) => number {
  const head = Buffer.alloc(5);
  let filled = 0;
  let left = 0;
  return (chunk) => {
    let count = 0;
    for (let at = 0; at < chunk.length; ) {
      const skipped = Math.min(left, chunk.length - at);
      at += skipped;
      left -= skipped;
      const copied = chunk.copy(head, filled, at, at + 5 - filled);
      at += copied;
      filled += copied;
      if (filled < 5) continue;
      filled = 0;
      left = head.readUInt32BE(1);
      count += 1;
    }
    return count;
  };
}

let made = 0;

async function sendEvent(url: string): Promise<void> {
  const n = made++;
  const body = Buffer.from(
    JSON.stringify({
      external_id: `order-${n}`,
      operation: "payment",
      is_success: true,
      details: { payment_id: `pay-${n}`, amount: "10.10", currency: "UAH", status: "success" },
      customer: { email: "jo@example.com" },
    }),
  );
  const response = await fetch(`${url}/callbacks/default/payments`, {
    method: "POST",
    headers: { "x-service-signature": sign(body, "sandbox-password") },
    body,
  });
  if (response.status !== 200) throw new Error(`a callback was answered ${response.status}`);
  await response.arrayBuffer();
}

/** Processor time that the gateway has used, in milliseconds. */
async function cpuMs(admin: string): Promise<number> {
  const text = await (await fetch(`${admin}/metrics`)).text();
  return Number(/^process_cpu_seconds_total (\S+)/m.exec(text)?.[1]) * 1_000;
}

async function measure(name: string): Promise<void> {
  const { child, urls } = await start();
  try {
    let delivered = 0;
    let seen = 0;
    let wake = Promise.withResolvers<void>();
    const subscribe = transports[name]?.();
    for (let i = 0; i < subscribers; i++) {
      let first = true;
      subscribe?.(urls, (count) => {
        if (first && count > 0) seen += 1;
        if (count > 0) first = false;
        delivered += count;
        wake.resolve();
      });
    }
    // All are there once each has had an event.
    while (seen < subscribers) {
      await sendEvent(urls.public ?? "");
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    delivered = 0;
    const expected = subscribers * events;
    const cpuBefore = await cpuMs(urls.admin ?? "");
    const since = performance.now();
    const senders = Array.from({ length: 4 }, async () => {
      for (let i = 0; i < events / 4; i++) await sendEvent(urls.public ?? "");
    });
    while (delivered < expected) {
      await wake.promise;
      wake = Promise.withResolvers();
    }
    const seconds = (performance.now() - since) / 1_000;
    await Promise.all(senders);
    const cpu = (await cpuMs(urls.admin ?? "")) - cpuBefore;
    console.log(
      `${name}: ${Math.round(expected / seconds)} deliveries a second to ${subscribers} subscribers, ` +
        `${((cpu * 1_000) / expected).toFixed(1)} µs of the processor for each`,
    );
  } finally {
    child.kill("SIGKILL");
    await once(child, "close");
  }
}

const chosen = process.argv.slice(2);
for (const name of chosen.length > 0 ? chosen : Object.keys(transports)) await measure(name);
process.exit();

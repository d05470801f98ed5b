import assert from "node:assert/strict";
import diagnostics from "node:diagnostics_channel";
import type net from "node:net";
import { text } from "node:stream/consumers";
import { describe, it, type TestContext } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import type { Call, Core } from "../../src/core/core.ts";
import { observedStream } from "../../src/core/observed-streams.ts";
import { GatewayError } from "../../src/errors.ts";
import { EventKind, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { StreamEventsRequestSchema } from "../../src/gen/payments/v1/event_service_pb.ts";
import { reportTo } from "../../src/report.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { noTracing } from "../../src/telemetry/tracing/tracing.ts";
import { opened } from "../ask.ts";
import { serve } from "../graphql/serve.ts";
import { rawSocket } from "../graphql/socket.ts";
import { envelope, start } from "../rpc/start.ts";
import { readScrape } from "../telemetry/scrape.ts";
import { until } from "../until.ts";

/** The local ports of clients whose connection the listeners of this process have closed. */
const closed = new Set<number | undefined>();
diagnostics.subscribe("net.server.socket", (message) => {
  const { socket } = message as { socket: net.Socket };
  const { remotePort } = socket;
  socket.once("close", () => closed.add(remotePort));
});

/** A client of the stream of all events that reads nothing yet. */
interface Client {
  readonly localPort: number | undefined;
  /** Reads on, and resolves with all that comes until the stream ends or is cut. */
  rest(): Promise<string>;
}

async function byHttp(
  t: TestContext,
  url: string,
  headers: Record<string, string>,
  body: string | Buffer,
): Promise<Client> {
  const { request, response } = await opened(url, { method: "POST", headers, body });
  t.after(() => request.destroy());
  const localPort = request.socket?.localPort;
  return { localPort, rest: () => text(response).catch((error: Error) => error.message) };
}

const query =
  "subscription { events { cursor ... on PaymentEvent { payment { details { payload } } } } }";

/** One for each way to cut a client: test/rpc/streams.test.ts has that of HTTP/2. */
const transports: Record<string, (t: TestContext, core: Partial<Core>) => Promise<Client>> = {
  async sse(t, core) {
    const { url } = await serve(t, core);
    const headers = { accept: "text/event-stream", "content-type": "application/json" };
    return byHttp(t, url, headers, JSON.stringify({ query }));
  },
  async websocket(t, core) {
    // A socket that answers no pings is cut for that too, but much later.
    const report = reportTo({ cut: ({ limit }) => assert.fail(limit) });
    const served = await serve(t, core, { report });
    const { socket, messages, subscribe, message } = await rawSocket(t, served);
    const { localPort } = (socket as unknown as { _socket: net.Socket })._socket;
    subscribe(query);
    await message("next");
    socket.pause();
    const rest = async () => {
      socket.resume();
      const isEnd = ({ type }: { type: string }) => type === "error" || type === "complete";
      await until(() => socket.readyState === socket.CLOSED || messages.some(isEnd));
      return JSON.stringify(messages);
    };
    return { localPort, rest };
  },
  async connect(t, core) {
    const started = await start(core);
    t.after(() => started[Symbol.asyncDispose]());
    const message = toBinary(StreamEventsRequestSchema, create(StreamEventsRequestSchema));
    const url = `${started.url}/payments.v1.EventService/StreamEvents`;
    const headers = { "content-type": "application/connect+proto" };
    return byHttp(t, url, headers, envelope(message));
  },
};

/** More than both ends of a connection buffer, so that what is unread stays with the gateway. */
const payload = "x".repeat(16 * 2 ** 20);

/** A core whose stream goes on until it fails because its reader is too slow. */
async function core() {
  const failure = new GatewayError("RESOURCE_EXHAUSTED", "too slow", {
    ...{ reason: "SLOW_CONSUMER", resumeCursor: "c-last" },
  });
  let yielded = 0;
  let isFailed = false;
  let tell: Call["onFail"];
  async function* events(call: Call) {
    tell = call.onFail;
    while (!isFailed) {
      const value = { details: { payload } };
      const resource = { case: "payment" as const, value };
      const about = { kind: EventKind.PAYMENT, externalId: "order", resource };
      yield create(EventSchema, { cursor: `c${yielded++}`, ...about });
    }
    throw failure;
  }
  const { metrics, report } = await createTelemetry(createLogger("silent"), []);
  const watched = (_: unknown, call: Call) =>
    observedStream(events, call, { tracing: noTracing, report });
  return {
    cases: { watchPayment: watched, watchPayout: watched, streamEvents: watched },
    /** Resolves once the edge takes no more events, since its client does not read. */
    async stalled() {
      let last = -1;
      for (let looks = 0; looks < 100; looks++) {
        if (yielded !== last) looks = 0;
        last = yielded;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    fail() {
      isFailed = true;
      tell?.(failure);
    },
    async cuts(transport: string) {
      const { value } = readScrape(await metrics.registry.metrics());
      return value("slow_consumers_cut_total", { transport });
    },
  };
}

describe("a slow reader", { concurrency: true }, () => {
  for (const [transport, open] of Object.entries(transports)) {
    it(`by ${transport} is cut, and counted`, async (t) => {
      const { cases, stalled, fail, cuts } = await core();
      const client = await open(t, cases);
      await stalled();
      fail();
      await until(() => closed.has(client.localPort), "it is cut");
      assert.doesNotMatch(await client.rest(), /c-last/);
      await until(async () => (await cuts(transport)) === 1);
    });

    it(`by ${transport} that reads on in time is told where to resume`, async (t) => {
      const { cases, stalled, fail } = await core();
      const client = await open(t, cases);
      await stalled();
      fail();
      const rest = await client.rest();
      assert.match(rest, /c-last/);
      assert.match(rest, /RATE_LIMITED|resource_exhausted/);
    });
  }
});

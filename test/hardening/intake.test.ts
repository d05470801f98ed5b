import assert from "node:assert/strict";
import { once } from "node:events";
import type http from "node:http";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import WebSocket from "ws";
import { killSpawned } from "../gateway/spawn.ts";
import { envelope } from "../rpc/start.ts";
import {
  brotli,
  costOf,
  flood,
  head,
  startTarget,
  type Target,
  together,
  words,
} from "./attacked.ts";
import { flag, frame, frameType, h2Peer, headerBlock } from "./h2-peer.ts";

/**
 * Few bytes that once stopped a process, each against one gateway with a heap of 512 MiB. It must
 * live, and take at most 200 MiB more. FAULTS=long also asserts how long a third party waits for
 * `/healthz`; otherwise times are only reported, and a fifth of the senders must take no more than
 * half of that.
 */
const long = process.env.FAULTS === "long";
const maxGrownMiB = long ? 200 : 100;
/** How many send at once. */
const senders = (count: number) => Math.ceil(long ? count : count / 5);
const maxHealthMs = 300;
const mebibyte = 1024 * 1024;

type Attack = (target: Target) => Promise<unknown>;

const portOf = (url: string) => Number(new URL(url).port);
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const proto = { "content-type": "application/proto", "content-encoding": "br" };
const createPayment = "/payments.v1.PaymentService/CreatePayment";
const reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/** A field that no message has, of two bytes. */
const unknownField = Buffer.from([0x78, 0]);
/** An element of `products` in a CreatePaymentRequest, without fields. */
const emptyProduct = Buffer.from([0x82, 0x01, 0x00]);
const unknownFields = brotli(unknownField, mebibyte);
const manyProducts = brotli(emptyProduct, mebibyte);

/** A body in chunks of one byte, on each of some connections. */
const oneByteChunks = (
  url: string,
  path: string,
  headers: Record<string, string>,
  connections: number,
) => {
  const first = head(path, { "transfer-encoding": "chunked", ...headers });
  const chunks = Buffer.from("1\r\n \r\n".repeat(50_000));
  return together(
    url,
    connections,
    Buffer.concat([Buffer.from(first), chunks]),
    Buffer.from("0\r\n\r\n"),
  );
};

/** Bodies in DATA frames of one byte, on 100 streams of each connection. */
async function oneByteFrames({ rpc, keys }: Target, connections: number): Promise<void> {
  const block = headerBlock({
    ...{ ":method": "POST", ":scheme": "http", ":path": createPayment, ":authority": "localhost" },
    ...{ "content-type": "application/json", ...bearer(keys.full) },
  });
  const ids = Array.from({ length: 100 }, (_, n) => 2 * n + 1);
  const frames = Buffer.concat(
    ids.flatMap((id) => Array(100).fill(frame(frameType.data, 0, id, Buffer.from(" ")))),
  );
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const peer = await h2Peer(portOf(rpc));
      peer.socket.setMaxListeners(0);
      peer.send(...ids.map((id) => frame(frameType.headers, flag.endHeaders, id, block)));
      for (let round = 0; round < 65 && !peer.isClosed; round++) {
        const taken = peer.socket.write(frames);
        if (!taken)
          await Promise.race([
            once(peer.socket, "drain").catch(() => {}),
            peer.closed,
            delay(2_000),
          ]);
      }
      await delay(100);
      peer.socket.destroy();
    }),
  );
}

/** A header field that enters the table of its connection. */
const newField = (n: number) => Buffer.from(`\x40\x03x${10 + (n % 90)}\x01v`);

/** Requests for nothing over one connection, with these header fields. */
async function headerFields({ rpc }: Target, fields: readonly Buffer[]): Promise<void> {
  const peer = await h2Peer(portOf(rpc));
  const pseudo = { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "localhost" };
  const block = Buffer.concat([headerBlock(pseudo), ...fields]);
  const flags = flag.endHeaders | flag.endStream;
  const requests = Array.from({ length: 5_000 }, (_, n) =>
    frame(frameType.headers, flags, 2 * n + 1, block),
  );
  peer.send(...requests);
  // The gateway may reset the connection.
  await Promise.race([peer.closed, once(peer.socket, "drain").catch(() => {})]);
  peer.socket.destroy();
}

/** Messages of 1 MiB on sockets that have not said who they are. */
const beforeInit = ({ publicUrl }: Target, text: string) =>
  Promise.all(
    Array.from({ length: 5 }, async () => {
      const url = `${publicUrl.replace("http", "ws")}/graphql`;
      const socket = new WebSocket(url, "graphql-transport-ws");
      socket.on("error", () => {});
      await once(socket, "open");
      for (let n = 0; n < 10; n++) socket.send(text);
      await once(socket, "close");
    }),
  );

/** Documents whose fields are compared with each other, each a little different. */
const slowDocument = (n: number) =>
  JSON.stringify({
    query: `query q${n} {${'payment(externalId:"x"){events{payment{details{amount}}}}'.repeat(110)}}`,
  });

/** Requests of GraphQL whose last bytes come together. */
async function lateDocuments({ publicUrl, keys }: Target): Promise<void> {
  await Promise.all(
    Array.from({ length: senders(100) }, (_, n) => {
      const body = Buffer.from(slowDocument(n % 10));
      const first = head("/graphql", {
        ...{ "content-type": "application/json", "content-length": body.length },
        ...bearer(keys.watch),
      });
      const begun = Buffer.concat([Buffer.from(first), body.subarray(0, -1)]);
      return together(publicUrl, 1, begun, body.subarray(-1));
    }),
  );
}

/** The same JSON over HTTP/1.1, each on a connection of its own. */
function jsonTo(url: string, path: string, key: string, body: string, count = 1) {
  const headers = { "content-type": "application/json", ...bearer(key) };
  const post = async () => {
    const answer = await fetch(new URL(path, url), { method: "POST", headers, body });
    await answer.arrayBuffer();
  };
  return Promise.all(Array.from({ length: count }, () => post().catch(() => {})));
}

/** Reads that make the gateway ask the service, whose answers are hostile. */
async function hostileAnswers(
  target: Target,
  count: number,
  answers: readonly http.RequestListener[],
): Promise<void> {
  let asked = 0;
  target.answer((request, response) => {
    answers[asked % answers.length]?.(request, response);
    asked += 1;
  });
  const path = "/payments.v1.WalletService/FindWalletItems";
  await Promise.all(
    Array.from({ length: count }, (_, n) =>
      jsonTo(target.rpc, path, target.keys.full, `{"customer":{"externalId":"c-${n}"}}`),
    ),
  );
  assert.ok(asked > 0, "the service was not asked");
}

function answerWith(text: string): http.RequestListener {
  const body = Buffer.from(text);
  return (_, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end(body);
  };
}

const spaces = Buffer.from("1\r\n \r\n".repeat(500_000));

/** Each of about the largest size, but the first, which ends at its many pieces. */
const hostile: Readonly<Record<string, http.RequestListener>> = {
  "in chunks of one byte": (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.write("[");
    response.socket?.write(spaces);
    response.end("]");
  },
  "that is a list of 95,000": answerWith(`[${'{"name":1},'.repeat(95_000)}{}]`),
  "of a million digits": answerWith(`[{"option_id":${"1".repeat(1_000_000)}}]`),
  "with a text of digits": answerWith(`[{"option_id":"1","name":"${"4 ".repeat(500_000)}"}]`),
};

/** After answers that were not understood, the gateway asks the service no more for a while. */
const answerAttacks: Readonly<Record<string, Attack>> = long
  ? Object.fromEntries(
      Object.entries(hostile).map(([name, answer]) => [
        `an answer ${name}`,
        (target) => hostileAnswers(target, 20, [answer]),
      ]),
    )
  : { "hostile answers": (target) => hostileAnswers(target, 8, Object.values(hostile)) };

const attacks: Readonly<Record<string, Attack>> = {
  "unknown fields, to health": ({ rpc }) =>
    flood(rpc, "/grpc.health.v1.Health/Check", senders(100), proto, unknownFields),
  "unknown fields, to reflection": ({ rpc }) =>
    flood(
      rpc,
      reflection,
      senders(10),
      { "content-type": "application/grpc", "grpc-encoding": "br", te: "trailers" },
      envelope(unknownFields, 1),
    ),
  "chunks of one byte, to RPC": ({ rpc }) =>
    oneByteChunks(rpc, createPayment, { "content-type": "application/json" }, senders(100)),
  "chunks of one byte, to GraphQL": ({ publicUrl, keys }) =>
    oneByteChunks(
      publicUrl,
      "/graphql",
      { "content-type": "application/json", ...bearer(keys.full) },
      senders(100),
    ),
  "chunks of one byte, as callbacks": ({ publicUrl }) =>
    oneByteChunks(
      publicUrl,
      "/callbacks/default/payments",
      { "x-service-signature": `${"A".repeat(27)}=` },
      senders(100),
    ),
  "frames of one byte": (target) => oneByteFrames(target, senders(5)),
  "requests behind each other": ({ rpc }) =>
    together(
      rpc,
      senders(100),
      Buffer.from("G"),
      Buffer.from("ET / HTTP/1.1\r\nhost: x\r\n\r\nG".repeat(10_000)),
    ),
  "header fields that fill the table anew": (target) =>
    headerFields(
      target,
      Array.from({ length: 100 }, (_, n) => newField(n)),
    ),
  // More than a call may have: Node resets each call.
  "header fields of one byte": (target) =>
    headerFields(target, [newField(0), Buffer.alloc(2_000, 0x80 | 62)]),
  "documents that come late": lateDocuments,
  "callbacks of 1 MiB that come late": ({ publicUrl }) => {
    const body = Buffer.alloc(mebibyte, "x");
    const first = head("/callbacks/default/payments", {
      ...{ "x-service-signature": `${"A".repeat(27)}=`, "content-length": body.length },
    });
    const begun = Buffer.concat([Buffer.from(first), body.subarray(1)]);
    return together(publicUrl, senders(100), begun, body.subarray(0, 1));
  },
  "lists of 349,525, by a key without scopes": ({ rpc, keys }) =>
    flood(rpc, createPayment, senders(100), { ...proto, ...bearer(keys.none) }, manyProducts),
  "lists of 349,525 that are not compressed": ({ rpc, keys }) =>
    flood(
      rpc,
      createPayment,
      senders(30),
      { "content-type": "application/proto", ...bearer(keys.full) },
      Buffer.alloc(mebibyte - 1, emptyProduct),
    ),
  "lists in JSON": ({ rpc, keys }) =>
    jsonTo(rpc, createPayment, keys.full, `{"products":[${"{},".repeat(349_000)}{}]}`, senders(30)),
  "lists in variables": ({ publicUrl, keys }) =>
    jsonTo(
      publicUrl,
      "/graphql",
      keys.watch,
      `{"query":"{x}","variables":{"a":[${"[],".repeat(349_000)}[]]}}`,
      senders(30),
    ),
  "messages before connection_init": (target) =>
    beforeInit(target, `{"type":"ping","payload":[${"[],".repeat(340_000)}[]]}`),
  "reflection whose answers are compressed": ({ rpc }) =>
    flood(
      rpc,
      reflection,
      senders(100),
      {
        ...{ "content-type": "application/grpc", te: "trailers" },
        "grpc-accept-encoding": "br",
      },
      // fileContainingSymbol = 4: "payments.v1.PaymentService"
      envelope(Buffer.from("\x22\x1apayments.v1.PaymentService")),
    ),
  ...answerAttacks,
};

after(() => killSpawned());

/** Processor time of each attack on the gateway with its limits, in milliseconds. */
const limited = new Map<string, number>();

describe("few bytes do not stop a gateway", () => {
  let target: Target;
  before(async () => {
    target = await startTarget(process.env.ATTACKED_CLI);
  });
  after(() => target.end());

  for (const [name, attack] of Object.entries(attacks)) {
    it(name, async (t) => {
      const { exitCode, signalCode } = target.spawned.child;
      if (exitCode !== null || signalCode !== null || (long && name in answerAttacks)) {
        target.end();
        target = await startTarget(process.env.ATTACKED_CLI);
      }
      const cost = await costOf(target, () => attack(target));
      t.diagnostic(words(cost));
      limited.set(name, cost.cpuMs);
      assert.ok(!cost.died, "the process died");
      assert.ok(cost.grownMiB <= maxGrownMiB, words(cost));
      if (long) assert.ok(cost.healthMs <= maxHealthMs, words(cost));
    });
  }
});

/**
 * Attacks that cost at least twice as much without the limits on what a message may hold; in the
 * short form those that take least time.
 */
const controls = [
  ...["frames of one byte", "documents that come late"],
  ...(long ? ["lists in JSON", "an answer that is a list of 95,000"] : []),
];

describe("control: without the limits the same bytes cost more", () => {
  let target: Target;
  before(async () => {
    target = await startTarget(new URL("./unlimited.ts", import.meta.url).pathname);
  });
  after(() => target.end());

  for (const name of controls) {
    it(name, async (t) => {
      const cost = await costOf(target, () => (attacks[name] as Attack)(target));
      t.diagnostic(words(cost));
      const before = limited.get(name) ?? Number.NaN;
      assert.ok(
        cost.died || cost.cpuMs >= 2 * before,
        `${words(cost)}; with the limits ${before} ms`,
      );
    });
  }
});

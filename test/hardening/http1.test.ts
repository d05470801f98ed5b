import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { text } from "node:stream/consumers";
import { describe, it, type TestContext, test } from "node:test";
import type { GetPaymentResponse } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { guardHttp1, http1Options, maxPipelined } from "../../src/net/http1.ts";
import { connected } from "../ask.ts";
import { listen } from "../listen.ts";
import { ofSuite } from "../of-suite.ts";
import { getPaymentPath, held, start } from "../rpc/start.ts";
import { startTestGateway } from "../start.ts";
import { recordCuts } from "./cuts.ts";

/** Sends bytes, and resolves with all that returns until the connection is closed. */
async function exchange(t: TestContext, address: string, bytes: string): Promise<string> {
  const socket = await connected(t, address);
  socket.write(bytes, "latin1");
  return text(socket);
}

/** Requests whose end parsers may see in different places: the rest could pass for a request. */
const ambiguous: Readonly<Record<string, string>> = {
  "length and chunks": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x",
  "chunks and length": "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
  "two lengths": "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
  "the same length twice": "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
  "a list of lengths": "Content-Length: 2, 2\r\n\r\n{}",
  "a length with a sign": "Content-Length: +2\r\n\r\n{}",
  "another encoding": "Transfer-Encoding: identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
  "an encoding below chunked": "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
  "an encoding behind chunked": "Transfer-Encoding: chunked, identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
  "an encoding like chunked": "Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
  "a space before the colon": "Transfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
  "a folded header": "X-A: 1\r\n b\r\nContent-Length: 2\r\n\r\n{}",
  "a header that ends in a line feed": "Content-Length: 2\nX: y\r\n\r\n{}",
  "a carriage return in a header": "X: a\rb\r\nContent-Length: 2\r\n\r\n{}",
  "a zero byte in a header": "X: a\0b\r\nContent-Length: 2\r\n\r\n{}",
  "a chunk's size that ends in a line feed": "Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n",
  "a chunk's extension that ends in a line feed":
    "Transfer-Encoding: chunked\r\n\r\n2;a\nb\r\n{}\r\n0\r\n\r\n",
  "a size beyond 64 bits": "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n{}\r\n0\r\n\r\n",
  "a negative size": "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
  "chunks by HTTP/1.0": "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
  "two hosts": "Host: elsewhere\r\nContent-Length: 2\r\n\r\n{}",
};

describe("requests that can be read in two ways are refused, and their connection closed", () => {
  const gateway = ofSuite(startTestGateway);

  const badRequest = /^HTTP\/1\.1 400 Bad Request\r\n(.*\r\n)*\r\n$/;
  /** All listeners have the parser's settings of one place: three of them show a few of the rows. */
  const listeners = {
    rpc: { url: () => gateway.rpcUrl + getPaymentPath, refused: badRequest },
    graphql: { url: () => `${gateway.publicUrl}/graphql`, refused: badRequest },
    // These answer before they read the body, so an answer may precede the error in the body.
    callbacks: {
      url: () => `${gateway.publicUrl}/callbacks/default/payments`,
      refused: /^$|^HTTP\/1\.1 400 /,
    },
    admin: {
      url: () => `${gateway.adminUrl}/healthz`,
      refused: /^(HTTP\/1\.1 405 (.*\r\n)*\r\n.*\n)?HTTP\/1\.1 400 /,
    },
  };
  const few = ["length and chunks", "the same length twice", "a zero byte in a header"];
  const head = (url: string) =>
    `POST ${new URL(url).pathname} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;

  for (const [listener, { url, refused }] of Object.entries(listeners)) {
    it(`${listener}`, async (t) => {
      for (const [name, rest] of Object.entries(ambiguous)) {
        if (listener !== "rpc" && !few.includes(name)) continue;
        const version = name.endsWith("HTTP/1.0") ? "HTTP/1.0" : "HTTP/1.1";
        const request = (head(url()) + rest).replace("HTTP/1.1", version);
        assert.match(await exchange(t, url(), request), refused, name);
      }
      const long = `X: ${"a".repeat(17_000)}\r\nContent-Length: 2\r\n\r\n{}`;
      assert.match(await exchange(t, url(), head(url()) + long), /^HTTP\/1\.1 431 /);
    });

    it(`${listener}: a plain request is served, and one with a target in absolute form as its path`, async (t) => {
      const rest = "Content-Length: 2\r\nConnection: close\r\n\r\n{}";
      const plain = head(url()) + rest;
      const whole = plain.replace("/", `http://localhost:${new URL(url()).port}/`);
      const [asPath] = (await exchange(t, url(), plain)).split("\r\n");
      const [asAddress] = (await exchange(t, url(), whole)).split("\r\n");
      assert.match(asPath ?? "", /^HTTP\/1\.1 (?!404)/);
      assert.equal(asAddress, asPath);
    });
  }

  it("an upgrade to anything but a WebSocket is ignored, and the request is served", async (t) => {
    const url = listeners.graphql.url();
    const body = '{"query":"{ rateLimit { limit } }"}';
    const answer = await exchange(
      t,
      url,
      `${head(url)}Connection: Upgrade, close\r\nUpgrade: h2c\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
  });
});

test("a host that no URL can have is refused, any other is served", async (t) => {
  // A listener on loopback that takes anybody's calls has names of its own: see dns-rebinding.test.ts.
  const gateway = await startTestGateway({
    ...{ ALLOW_UNAUTHENTICATED: "true", PUBLIC_ADDR: "0.0.0.0:0", RPC_ADDR: "0.0.0.0:0" },
  });
  t.after(() => gateway.stop());
  const answerTo = async (url: string, body: string, host: string) => {
    const { port, pathname } = new URL(url);
    const request = `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n`;
    const json = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const answer = await exchange(t, `http://127.0.0.1:${port}`, request + json);
    return answer.split("\r\n")[0];
  };
  const { rpcUrl, publicUrl } = gateway;
  for (const [url, body, served] of [
    [rpcUrl + getPaymentPath, '{"externalId":"x"}', "HTTP/1.1 404 Not Found"],
    [`${publicUrl}/graphql`, '{"query":"{__typename}"}', "HTTP/1.1 200 OK"],
    [`${publicUrl}/callbacks/default/payments`, "{}", "HTTP/1.1 401 Unauthorized"],
    [`${publicUrl}/watch`, "{}", "HTTP/1.1 404 Not Found"],
  ] as const) {
    for (const host of ["a b", "[::1", "a/b", "x@y", "a?b", "1.2.3.999", "a:99999", "a\\b"]) {
      assert.equal(await answerTo(url, body, host), "HTTP/1.1 400 Bad Request", `${url} ${host}`);
    }
    for (const host of ["[::1]:80", "shop_gateway.internal", "LOCALHOST:4000"]) {
      assert.equal(await answerTo(url, body, host), served, `${url} ${host}`);
    }
  }
});

const request = `POST ${getPaymentPath} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`;
const lastRequest = request.replace("Host", "Connection: close\r\nHost");

test("pipelined requests are cut beyond the limit and served within it", async (t) => {
  const { core, release } = held();
  const cuts = recordCuts();
  const rpc = await start(core, { report: cuts.report });
  t.after(() => rpc[Symbol.asyncDispose]());

  const attacker = await connected(t, rpc.port);
  attacker.write(request.repeat(1_000));
  await text(attacker).catch(() => {});
  assert.deepEqual(cuts.cuts, ["pipelining"]);
  assert.ok(rpc.calls.length <= maxPipelined, `${rpc.calls.length} calls`);

  const usual = await connected(t, rpc.port);
  usual.write(request.repeat(maxPipelined - 1));
  usual.write(lastRequest);
  release();
  const answers = (await text(usual)).match(/HTTP\/1\.1 200 OK/g);
  assert.equal(answers?.length, maxPipelined);
});

test("Node parses no further requests of a connection that was cut", async (t) => {
  /** How many of 2,000 requests, which are read at once, become objects. */
  const parsed = async (options: http.ServerOptions) => {
    const { onCut } = recordCuts();
    let requests = 0;
    const server = http.createServer(options, (request, response) => {
      requests += 1;
      passes(request, response);
    });
    const passes = guardHttp1(server, onCut);
    t.after(() => server.close());
    const attacker = await connected(t, await listen(server));
    attacker.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2_000));
    await text(attacker).catch(() => {});
    return requests;
  };
  assert.equal(await parsed(http1Options), maxPipelined + 1);
  assert.ok((await parsed({})) > 1_000, "control");
});

test("all requests of a cut connection end", async (t) => {
  const { onCut } = recordCuts();
  const ends: Promise<unknown>[] = [];
  const server = http.createServer(http1Options, (request, response) => {
    if (!passes(request, response)) return;
    ends.push(once(response, "close"), new Promise((ended) => request.on("close", ended)));
    if (ends.length === 4) request.socket.destroy();
  });
  // Node takes what follows for an upgrade.
  server.on("upgrade", (_request, socket) => socket.end("HTTP/1.1 404 Not Found\r\n\r\n"));
  const passes = guardHttp1(server, onCut);
  t.after(() => server.close());
  const attacker = await connected(t, await listen(server));
  const post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n";
  attacker.write(`${post}ab`.repeat(3));
  await text(attacker).catch(() => {});
  assert.equal(ends.length, 4);
  await Promise.all(ends);
});

test("an answer that is not read is cut, and one that is read slowly is not", async (t) => {
  // More than the buffers of both sides hold.
  const large = { cursor: "c".repeat(30_000_000) } as GetPaymentResponse;
  const rig = async (unreadTimeoutMs: number) => {
    const cuts = recordCuts();
    const rpc = await start(
      { getPayment: async () => large },
      { limits: { unreadTimeoutMs }, report: cuts.report },
    );
    t.after(() => rpc[Symbol.asyncDispose]());
    const socket = await connected(t, rpc.port);
    socket.pause();
    socket.write(lastRequest);
    return { ...cuts, socket };
  };
  const control = await rig(60_000);
  const attacked = await rig(200);
  await attacked.cut("unread_answer");
  let read = 0;
  for await (const chunk of control.socket) read += (chunk as Buffer).length;
  assert.ok(read > 30_000_000);
  assert.deepEqual(control.cuts, []);
});

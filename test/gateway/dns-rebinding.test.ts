import assert from "node:assert/strict";
import { once } from "node:events";
import type { ClientRequest } from "node:http";
import { test } from "node:test";
import WebSocket from "ws";
import type { Gateway } from "../../src/app/gateway.ts";
import { sign } from "../../src/wire/signature.ts";
import { ask } from "../ask.ts";
import { accessEnv, newKey, scratch } from "../auth/issuer.ts";
import { logRecords } from "../log-records.ts";
import { closing, ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { graphql, paymentTold } from "./callers.ts";

/** Headers of a browser for a page of evil.example, whose name now resolves to 127.0.0.1. */
const rebound = { host: "evil.example:4000" };
const files = scratch();
const key = newKey();
const authorization = `Bearer ${key}`;

/** `open` needs no credentials and has the guard; `closed`, the control, needs a key instead. */
const open = ofSuite(() => startTestGateway({ PUBLIC_URL: "http://gateway.shop.example" }));
const closed = ofSuite(() =>
  startTestGateway(accessEnv(files, [{ name: "shop", key, scopes: ["payments:read"] }])),
);

/** With the key, which `open` does not need. The target of the request is `path`, if it is given. */
const send = (url: string, headers: Record<string, string>, body?: string, path?: string) =>
  ask(url, {
    method: body === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json", authorization, ...headers },
    ...(body !== undefined && { body }),
    ...(path !== undefined && { path }),
  });

const getPayment = "/payments.v1.PaymentService/GetPayment";
/* How RPC refuses, by each protocol: test/rpc/request-listener.test.ts. */
const calls: Record<
  string,
  [
    url: (gateway: Gateway) => string,
    body: string | undefined,
    status: number,
    /** The status without the guard if it differs: the key lacks the scope of operators. */
    unguarded?: number,
  ]
> = {
  "a query": [
    ({ publicUrl }) => `${publicUrl}/graphql`,
    '{"query": "{ payment(externalId: \\"e\\") { id } }"}',
    200,
  ],
  "a query by GET": [({ publicUrl }) => `${publicUrl}/graphql?query={__typename}`, undefined, 200],
  "an RPC": [({ rpcUrl }) => rpcUrl + getPayment, '{"externalId": "e"}', 404],
  metrics: [({ adminUrl }) => `${adminUrl}/metrics`, undefined, 200],
  "the dead letters": [({ adminUrl }) => `${adminUrl}/dead-letters`, undefined, 200, 403],
  "a replay": [({ adminUrl }) => `${adminUrl}/dead-letters/default/x/replay`, "{}", 404, 403],
};
for (const [what, [url, body, good, unguarded = good]] of Object.entries(calls)) {
  test(`${what} from a foreign page in a browser is refused`, async () => {
    const misdirected = await send(url(open), rebound, body);
    assert.equal(misdirected.status, 421);
    assert.match(misdirected.text, /AUTH_MODE=none.*PUBLIC_URL.*Host/);
    const { pathname, search } = new URL(url(open));
    const target = `http://evil.example:4000${pathname}${search}`;
    assert.equal((await send(url(open), {}, body, target)).status, 421, "in absolute form");
    const origin = await send(url(open), { origin: "http://evil.example" }, body);
    assert.equal(origin.status, 403);
    for (const headers of [{}, { host: "localhost" }, { host: "gateway.shop.example" }]) {
      assert.equal((await send(url(open), headers, body)).status, good, JSON.stringify(headers));
    }
    assert.equal((await send(url(closed), rebound, body)).status, unguarded, "without the guard");
  });
}

test("a WebSocket that a foreign page opens is refused", async () => {
  const opened = async (
    { publicUrl }: Gateway,
    headers: Record<string, string | string[]>,
    path = "/graphql",
  ) => {
    const url = publicUrl.replace("http", "ws");
    const finishRequest = (request: ClientRequest) => {
      request.path = path;
      request.end();
    };
    const socket = new WebSocket(url, "graphql-transport-ws", { headers, finishRequest });
    const refused = once(socket, "unexpected-response").then(([, response]) => {
      response.resume();
      return response.statusCode;
    });
    const done = await Promise.race([once(socket, "open").then(() => 101), refused]);
    socket.on("error", () => {}).terminate();
    return done;
  };
  assert.equal(await opened(open, rebound), 421);
  // Host and Origin are the same here.
  assert.equal(await opened(open, { ...rebound, origin: "http://evil.example:4000" }), 421);
  assert.equal(await opened(open, {}, "http://evil.example/graphql"), 421);
  assert.equal(await opened(open, { host: ["localhost", "evil.example"] }), 400);
  assert.equal(await opened(open, {}, "//evil.example/graphql"), 404);
  assert.equal(await opened(open, {}, `${open.publicUrl}/graphql`), 101);
  assert.equal(await opened(open, {}), 101);
  assert.equal(await opened(closed, rebound), 101, "without the guard");
});

test("callbacks are accepted with any Host", async () => {
  const body = JSON.stringify(paymentTold("e"));
  const signature = { "x-service-signature": sign(Buffer.from(body), "sandbox-password") };
  for (const host of ["payments.shop.example", "evil.example", "127.0.0.1"]) {
    const url = `${open.publicUrl}/callbacks/default/payments`;
    assert.equal((await send(url, { host, ...signature }, body)).status, 200, host);
  }
});

const shownBy = { origin: "http://localhost:5173", "sec-fetch-site": "same-site" };

test("with the sandbox a page of this machine on another port may call, and reads the answer", async () => {
  const { response } = await graphql(open, "{ rateLimit { limit } }", { headers: shownBy });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("access-control-allow-origin"), shownBy.origin);
});

test("a refused page is told what allows it, and its origin is logged once", async (t) => {
  const { log, records } = logRecords("warn");
  const env = { CORS_ORIGINS: "https://shop.example" };
  const gateway = closing(t, await startTestGateway(env, {}, log));
  const query = `${gateway.publicUrl}/graphql?query=%7B__typename%7D`;
  for (let n = 0; n < 2; n++) {
    const { status, text } = await send(query, shownBy);
    assert.equal(status, 403);
    assert.match(text, /pages of this origin may not call: list it in CORS_ORIGINS/);
    await send(query, { origin: "http://evil.example" });
    await send(query, { origin: "not an origin" });
    await send(query, { origin: "https://shop.example" });
  }
  assert.deepEqual(
    records
      .filter(({ origin }) => origin !== undefined)
      .map(({ origin, msg }) => [origin, String(msg).includes("CORS_ORIGINS")]),
    [
      [shownBy.origin, true],
      ["http://evil.example", true],
    ],
  );
});

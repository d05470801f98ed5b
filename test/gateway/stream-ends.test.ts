import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { createClient as createWsClient } from "graphql-ws";
import WebSocket from "ws";
import type { Gateway } from "../../src/app/gateway.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import {
  audience,
  issuer,
  keysText,
  newKey,
  scratch,
  signingKey,
  signToken,
} from "../auth/issuer.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";
import { paymentRequest } from "./operations.ts";

const files = scratch();
const signing = await signingKey("es");
const key = newKey();
const staying = { name: "staying", key: newKey(), scopes: ["payments:read"] };
const scopes = ["payments:read", "payments:write", "events:read", "watch:create"];
const keysFile = () => keysText([staying, { name: "shop", key, scopes }]);

async function start(t: TestContext, env: Record<string, string> = {}) {
  const gateway = await startTestGateway({
    AUTH_MODE: "keys,jwt",
    API_KEYS_FILE: files.write("keys", keysFile()),
    AUTH_JWKS_FILE: files.write("jwks", JSON.stringify({ keys: [signing.jwk] })),
    AUTH_ISSUER: issuer,
    AUTH_AUDIENCE: audience,
    ...env,
  });
  t.after(() => gateway.stop());
  const request = paymentRequest("order");
  await clientOf(gateway, PaymentService).createPayment(request as never, as(key));
  return gateway;
}

const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

function clientOf<Service extends typeof PaymentService | typeof EventService>(
  gateway: Gateway,
  service: Service,
) {
  const transport = createConnectTransport({ baseUrl: gateway.rpcUrl, httpVersion: "2" });
  return createClient(service, transport);
}

/** An open stream. */
interface Open {
  /** Resolves when the stream ends, with the error's code and the cursor to resume from. */
  readonly ended: Promise<{ code: string; resumeCursor: string | undefined }>;
  leave(): void;
}

const query = 'subscription { paymentUpdated(externalId: "order") { cursor } }';

const edges: Record<string, (gateway: Gateway, token: string) => Promise<Open>> = {
  async RPC(gateway, token) {
    const leave = new AbortController();
    const events = clientOf(gateway, PaymentService)
      .watchPayment({ externalId: "order" }, { ...as(token), signal: leave.signal })
      [Symbol.asyncIterator]();
    await events.next();
    const ended = drain(events).then(
      () => assert.fail("the stream ended well"),
      (error) => {
        const { code, metadata } = ConnectError.from(error);
        return {
          code: code === Code.Unauthenticated ? "UNAUTHENTICATED" : Code[code],
          resumeCursor: metadata.get("x-resume-cursor") ?? undefined,
        };
      },
    );
    return { ended, leave: () => leave.abort() };
  },

  async SSE(gateway, token) {
    const leave = new AbortController();
    const response = await fetch(`${gateway.publicUrl}/graphql`, {
      method: "POST",
      headers: {
        accept: "text/event-stream",
        "content-type": "application/json",
        authorization: `Bearer ${token}`,
      },
      body: JSON.stringify({ query }),
      signal: AbortSignal.any([leave.signal, AbortSignal.timeout(timeoutMs)]),
    });
    const begun = Promise.withResolvers<void>();
    const read = async () => {
      let text = "";
      for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        text += chunk;
        if (text.includes('"cursor"') || text.includes('"errors"')) begun.resolve();
      }
      const error = /"extensions":(\{[^}]*\})/.exec(text)?.[1];
      return JSON.parse(error ?? "{}");
    };
    const ended = read();
    await begun.promise;
    return { ended, leave: () => leave.abort() };
  },

  async WebSocket(gateway, token) {
    const client = createWsClient({
      url: `${gateway.publicUrl.replace("http", "ws")}/graphql`,
      webSocketImpl: WebSocket,
      retryAttempts: 0,
      connectionParams: { authorization: `Bearer ${token}` },
    });
    const begun = Promise.withResolvers<void>();
    const read = async () => {
      for await (const { errors } of client.iterate({ query })) {
        begun.resolve();
        if (errors) return errors[0]?.extensions as Awaited<Open["ended"]>;
      }
      return assert.fail("the stream ended well");
    };
    const ended = read().finally(() => client.dispose());
    await begun.promise;
    return { ended, leave: () => client.dispose() };
  },
};

/** Rejects when a stream does not end in time, so that only its test fails. */
function inTime<T>(ended: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("the stream did not end")), timeoutMs);
  return Promise.race([ended, promise]).finally(() => clearTimeout(timer));
}

async function drain(events: AsyncIterator<unknown>): Promise<void> {
  while (!(await events.next()).done);
}

for (const [edge, open] of Object.entries(edges)) {
  test(`${edge}: a stream ends soon after its key is removed, with the cursor to resume from`, async (t) => {
    const gateway = await start(t);
    const watch = await open(gateway, key);
    const unharmed = await open(gateway, staying.key);
    files.write("keys", keysText([staying]));
    const { code, resumeCursor } = await inTime(watch.ended);
    assert.equal(code, "UNAUTHENTICATED");
    assert.ok(resumeCursor);
    const again = clientOf(gateway, PaymentService).getPayment({ externalId: "order" }, as(key));
    await assert.rejects(again, { code: Code.Unauthenticated });
    await clientOf(gateway, PaymentService).getPayment({ externalId: "order" }, as(staying.key));
    unharmed.leave();
    await unharmed.ended.catch(() => undefined);
  });
}

test("streams end when their JWT or watch token expires", async (t) => {
  const gateway = await start(t);
  // Long enough to open all streams, on a busy machine too.
  const ttlSeconds = 5;
  const exp = Math.floor(Date.now() / 1_000) + ttlSeconds;
  const { token: watchToken } = await clientOf(gateway, EventService).createWatchToken(
    { externalId: "order", kind: EventKind.PAYMENT, ttlSeconds },
    as(key),
  );
  const jwt = await signToken(signing, { scope: "payments:read", exp });
  const expire = Object.entries(edges).flatMap(([edge, open]) =>
    [jwt, watchToken].map(async (token) => {
      const watch = await open(gateway, token);
      const { code, resumeCursor } = await inTime(watch.ended);
      assert.ok(Date.now() >= exp * 1_000, edge);
      assert.equal(code, "UNAUTHENTICATED", edge);
      assert.ok(resumeCursor, edge);
    }),
  );
  await Promise.all(expire);
});

test("MAX_STREAMS_PER_CALLER counts over all edges, and a closed stream frees its slot", async (t) => {
  const gateway = await start(t, { MAX_STREAMS_PER_CALLER: "3" });
  const watches = await Promise.all(Object.values(edges).map((open) => open(gateway, key)));
  const events = clientOf(gateway, EventService).streamEvents({}, as(key));
  await assert.rejects(drain(events[Symbol.asyncIterator]()), (error) => {
    assert.equal(ConnectError.from(error).code, Code.ResourceExhausted);
    return true;
  });
  const refused = await edges.SSE?.(gateway, key);
  assert.equal((await refused?.ended)?.code, "RATE_LIMITED");

  const other = await edges.RPC?.(gateway, staying.key);
  other?.leave();
  await other?.ended;

  for (const { leave, ended } of watches) {
    leave();
    await ended.catch(() => undefined);
    const next = await untilAllowed(() => edges.RPC?.(gateway, key) as Promise<Open>);
    next.leave();
    await next.ended;
  }
});

/** Retries while the limit is reached: the gateway notices a client's disconnect a little later. */
async function untilAllowed<T>(open: () => Promise<T>): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await open();
    } catch (error) {
      const busy = ConnectError.from(error).code === Code.ResourceExhausted;
      if (!busy || Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

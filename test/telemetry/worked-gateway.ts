import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTo } from "node:net";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import type { Gateway } from "../../src/app/gateway.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { postCallback } from "../gateway/callers.ts";
import { type RedisServer, startRedis, withoutRedis } from "../redis/server.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";
import { type Scrape, scrapeOf } from "./scrape.ts";

/** A gateway that has done some work of every kind, with Redis if redis-server is installed. */
export interface WorkedGateway {
  readonly gateway: Gateway;
  readonly redis: boolean;
  scrape(): Promise<Scrape>;
  /** Scrapes until `fits` holds. */
  scrapeUntil(fits: (scrape: Scrape) => boolean): Promise<Scrape>;
  graphql(query: string, headers?: Record<string, string>): Promise<string>;
  callback(body: string, password?: string): Promise<number>;
  stopRedis(): Promise<void>;
  close(): Promise<void>;
}

export async function startWorkedGateway(): Promise<WorkedGateway> {
  const redis: RedisServer | undefined = withoutRedis ? undefined : await startRedis();
  const gateway = await startTestGateway({
    ...(redis ? { REDIS_URL: redis.url } : {}),
    RECONCILE_AFTER: "100ms",
    RATE_LIMIT_INITIAL: "1000",
    RATE_LIMIT_MAX_WAIT: "10s",
  });
  const worked: WorkedGateway = {
    gateway,
    redis: redis !== undefined,
    async scrape() {
      return scrapeOf(gateway);
    },
    async scrapeUntil(fits) {
      const giveUpAt = Date.now() + timeoutMs;
      for (;;) {
        const scrape = await worked.scrape();
        if (fits(scrape)) return scrape;
        assert.ok(Date.now() < giveUpAt, "the metrics do not get there");
      }
    },
    async graphql(query, headers = {}) {
      const answer = await fetch(`${gateway.publicUrl}/graphql`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ query }),
      });
      return answer.text();
    },
    async callback(body, password = "sandbox-password") {
      return (await postCallback(gateway, body, { password })).status;
    },
    async stopRedis() {
      await redis?.stop();
    },
    async close() {
      await gateway.stop();
      await redis?.close();
    },
  };
  await work(worked);
  return worked;
}

async function work({ gateway, graphql, callback, scrapeUntil }: WorkedGateway): Promise<void> {
  const baseUrl = gateway.rpcUrl;
  const connect = createConnectTransport({ baseUrl, httpVersion: "1.1" });
  const grpc = createGrpcTransport({ baseUrl, idleConnectionTimeoutMs: 50 });
  const payments = createClient(PaymentService, connect);
  const code = (error: unknown) => ConnectError.from(error).code;

  const watched = createClient(PaymentService, grpc).watchPayment({
    externalId: "watched",
    untilFinal: true,
  });
  const events = (async () => {
    let count = 0;
    for await (const _ of watched) count += 1;
    return count;
  })();
  await scrapeUntil(({ value }) => value("watchers", { transport: "grpc" }) === 1);

  const pay = (externalId: string, number = "4111111111111111") =>
    payments.createPayment({
      amount: "10.10",
      currency: "UAH",
      mode: PaymentMode.DIRECT,
      externalId,
      customer: { email: "jo@shop.example" },
      paymentMethod: {
        method: { case: "cc", value: { number, cvv: "123", expMonth: 12, expYear: 2031 } },
      },
    });
  await pay("watched");
  assert.ok((await events) >= 1);
  await pay("declined", "4000000000000614").catch(() => undefined);
  await assert.rejects(pay("lost", "4000000000000713"), (e) => code(e) === Code.Unknown);
  await assert.rejects(pay("limited", "4000000000000739"), (e) => {
    return code(e) === Code.ResourceExhausted;
  });
  await assert.rejects(payments.getPayment({ externalId: "nobody" }), (e) => {
    return code(e) === Code.NotFound;
  });

  assert.match(await graphql('{ payment(externalId: "watched") { isSuccess } }'), /true/);
  assert.match(await graphql('{ operation(externalId: "x", operationId: "y") { id } }'), /code/);
  assert.match(await graphql("{ nonsense }"), /GRAPHQL_VALIDATION_FAILED/);
  const stream = await graphql(
    'subscription { paymentUpdated(externalId: "watched", untilFinal: true) { final } }',
    { accept: "text/event-stream" },
  );
  assert.match(stream, /"final":true/);

  assert.equal(await callback('{"not":"understood"}'), 200);
  assert.equal(await callback("{}", "another password"), 401);
  // A flag of the wrong type is left unset, half a surrogate pair is replaced; both are reported.
  const odd = JSON.stringify({
    external_id: "odd",
    operation: "payment",
    is_success: "perhaps",
    details: { payment_id: "p-odd", status: "pending", payload: "\ud800" },
  });
  assert.equal(await callback(odd), 200);
  for (const payload of ["one", "two"]) {
    const details = { payment_id: "p-back", status: "success", payload };
    const body = { external_id: "back", operation: "chargeback", details };
    assert.equal(await callback(JSON.stringify(body)), 200);
  }
  for (const status of ["failure", "success"]) {
    const details = { payment_id: "p-two", status };
    const body = { external_id: "two", operation: "payment", details };
    assert.equal(await callback(JSON.stringify(body)), 200);
  }
  const { hostname, port } = new URL(gateway.publicUrl);
  const stranger = connectTo(Number(port), hostname).end("no HTTP at all\r\n\r\n");
  await once(stranger.resume(), "close");
  // The lost outcome is looked up and settled. money_calls_open is updated every 5 s.
  await scrapeUntil(({ sum }) => sum("reconciliations_settled_total", {}) > 0);
  await scrapeUntil(({ has }) => has("money_calls_open"));
}

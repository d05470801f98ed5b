import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Gateway } from "../../src/app/gateway.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { connected } from "../ask.ts";
import {
  clientOf,
  graphql,
  paymentRequest,
  postCallback,
  sendCallback,
} from "../gateway/callers.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import { startTestGateway } from "../start.ts";
import { tlsFile } from "../tls.ts";
import { readScrape, scrapeOf, scrapeUntil } from "./scrape.ts";

/** A gateway that has done some work of every kind, with Redis if redis-server is installed. */
export async function startWorkedGateway() {
  const redis = withoutRedis ? undefined : await startRedis();
  const gateway = await startTestGateway({
    ...(redis ? { REDIS_URL: redis.url } : {}),
    RECONCILE_AFTER: "100ms",
    RATE_LIMIT_INITIAL: "1000",
    RATE_LIMIT_MAX_WAIT: "10s",
  });
  await work(gateway);
  const encrypted = await startTestGateway({
    TLS_CERT_FILE: tlsFile("localhost.crt"),
    TLS_KEY_FILE: tlsFile("localhost.key"),
  });
  const texts = [await scrapeOf(gateway), await scrapeOf(encrypted)].map(({ text }) => text);
  await encrypted.stop();
  return {
    ...gateway,
    redis,
    /** Of that gateway when it had done its work, and of one with TLS. */
    scrape: readScrape(texts.join("")),
    async stop() {
      await gateway.stop();
      await redis?.close();
    },
  };
}

async function work(gateway: Gateway): Promise<void> {
  const watched = clientOf(PaymentService, gateway).watchPayment({
    externalId: "watched",
    untilFinal: true,
  });
  const events = (async () => {
    let count = 0;
    for await (const _ of watched) count += 1;
    return count;
  })();
  await scrapeUntil(gateway, ({ value }) => value("watchers", { transport: "grpc" }) === 1);

  const payments = clientOf(PaymentService, gateway, "Connect");
  const pay = (externalId: string, number?: string) =>
    payments.createPayment(paymentRequest(externalId, number));
  const failsWith = (code: Code, call: Promise<unknown>) =>
    assert.rejects(call, (error) => ConnectError.from(error).code === code);
  await pay("watched");
  assert.ok((await events) >= 1);
  await pay("declined", "4000000000000614").catch(() => undefined);
  await failsWith(Code.Unknown, pay("lost", "4000000000000713"));
  await failsWith(Code.ResourceExhausted, pay("limited", "4000000000000739"));
  await failsWith(Code.NotFound, payments.getPayment({ externalId: "nobody" }));

  const { data } = await graphql(gateway, '{ payment(externalId: "watched") { isSuccess } }');
  assert.equal(data.payment.isSuccess, true);
  for (const refused of [
    '{ operation(externalId: "x", operationId: "y") { id } }',
    "{ nonsense }",
  ]) {
    assert.ok((await graphql(gateway, refused)).errors, refused);
  }
  const query = encodeURIComponent(
    'subscription { paymentUpdated(externalId: "watched", untilFinal: true) { final } }',
  );
  const accept = { headers: { accept: "text/event-stream" } };
  const stream = await fetch(`${gateway.publicUrl}/graphql?query=${query}`, accept);
  assert.match(await stream.text(), /"final":true/);

  await sendCallback(gateway, '{"not":"understood"}');
  assert.equal((await postCallback(gateway, "{}", { password: "another password" })).status, 401);
  // A flag of the wrong type is left unset, half a surrogate pair is replaced; both are reported.
  await sendCallback(gateway, {
    external_id: "odd",
    operation: "payment",
    is_success: "perhaps",
    details: { payment_id: "p-odd", status: "pending", payload: "\ud800" },
  });
  for (const payload of ["one", "two"]) {
    const details = { payment_id: "p-back", status: "success", payload };
    await sendCallback(gateway, { external_id: "back", operation: "chargeback", details });
  }
  for (const status of ["failure", "success"]) {
    const details = { payment_id: "p-two", status };
    await sendCallback(gateway, { external_id: "two", operation: "payment", details });
  }
  const stranger = await connected({ after() {} }, gateway.publicUrl);
  await text(stranger.end("no HTTP at all\r\n\r\n"));
  // The lost outcome is looked up and settled.
  await scrapeUntil(gateway, ({ sum }) => sum("reconciliations_settled_total", {}) > 0);
}

import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { parseCallback } from "../../src/callbacks/parse-callback.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { connectRedis } from "../../src/redis/connect.ts";
import { deriveKeyring } from "../../src/secrets/keyring.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createRedisLedger } from "../ledger/create.ts";
import { type RedisServer, startRedis, withoutRedis } from "../redis/server.ts";
import { startTestGateway } from "../start.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { until } from "../until.ts";
import { clientOf } from "./callers.ts";

const callback = (externalId: string) =>
  JSON.stringify({
    external_id: externalId,
    operation: "payment",
    details: { payment_id: `p-${externalId}`, status: "success" },
    payment_method: { type: "cc_token", cc_token: { token: `card-token-${externalId}` } },
  });

/** A dead letter that an earlier version of the gateway did not understand and this one does. */
const letter = (externalId: string) => ({
  id: `letter-${externalId}`,
  kind: EventKind.PAYMENT,
  body: Buffer.from(callback(externalId)).toString("base64"),
  reason: "the body is not JSON",
  receivedAtMs: 1_700_000_000_000,
});

describe("a gateway that restarts on sealed data", { skip: withoutRedis, timeout: 60_000 }, () => {
  let redis: RedisServer;
  before(async () => {
    redis = await startRedis();
    const connector = connectRedis(new Secret(redis.url), () => {});
    const keyring = await deriveKeyring("default", [new Secret("old")]);
    const keyringOf = () => keyring;
    const log = createRedisLedger({
      redis: connector,
      prefix: "pgw",
      retentionMs: 60_000,
      keyringOf,
    });
    await until(async () => (await connector.client.ping()) === "PONG");
    for (const id of ["rotated", "dropped"]) await log.letters.addDeadLetter("default", letter(id));
    const { entry } = parseCallback(EventKind.PAYMENT, Buffer.from(callback("before")));
    assert.ok(entry);
    await log.append("default", entry);
    await log.close();
    await connector.close();
  });
  after(() => redis.close());

  async function start(t: TestContext, password: string, previous: string) {
    const logged: string[] = [];
    const gateway = await startTestGateway(
      {
        REDIS_URL: redis.url,
        UPSTREAM_PASSWORD: password,
        UPSTREAM_PREVIOUS_PASSWORDS: previous,
      },
      {},
      createLogger("error", { write: (line) => logged.push(line) }),
    );
    t.after(() => gateway.stop());
    const json = async (path: string, method = "GET") => {
      const headers = { "content-type": "application/json" };
      const response = await fetch(gateway.adminUrl + path, { method, headers });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    await until(async () => (await json("/dead-letters")).status === 200);
    return {
      logged,
      async tokenOf(externalId: string) {
        const { payment } = await clientOf(PaymentService, gateway).getPayment({ externalId });
        assert.equal(payment?.externalId, externalId);
        return payment.paymentMethod?.ccToken?.token;
      },
      look: (id: string) => json(`/dead-letters/default/letter-${id}`),
      replay: (id: string) => json(`/dead-letters/default/letter-${id}/replay`, "POST"),
      counted: async (what: string) =>
        (await scrapeOf(gateway)).sum("sealed_locked_total", { what }),
    };
  }

  it("reads and replays all after a password change while the old password is a previous one", async (t) => {
    const { look, replay, tokenOf, counted, logged } = await start(t, "new", "old");
    assert.equal(await tokenOf("before"), "card-token-before");
    assert.equal((await look("rotated")).body.body, letter("rotated").body);
    assert.deepEqual(await replay("rotated"), { status: 200, body: { outcome: "stored" } });
    assert.equal(await tokenOf("rotated"), "card-token-rotated");
    assert.equal((await look("rotated")).status, 404);
    assert.deepEqual([await counted("event"), await counted("dead_letter"), logged], [0, 0, []]);
  });

  it("serves events without their secrets once the old password is dropped, and logs it", async (t) => {
    const { look, replay, tokenOf, counted, logged } = await start(t, "new", "");
    assert.equal(await tokenOf("before"), undefined);
    assert.equal(await tokenOf("rotated"), "card-token-rotated");
    assert.equal(await counted("event"), 1);

    const { status, body } = await look("dropped");
    assert.deepEqual([status, body.locked, body.body], [200, true, undefined]);
    assert.equal(body.reason, letter("dropped").reason);
    assert.deepEqual(await replay("dropped"), { status: 422, body: { outcome: "locked" } });
    assert.equal((await look("dropped")).status, 200, "it stays");
    assert.ok((await counted("dead_letter")) > 2);
    const told = logged.map((line) => JSON.parse(line)).map(({ account, what }) => [account, what]);
    assert.deepEqual(told.toSorted(), [
      ["default", "dead_letter"],
      ["default", "event"],
    ]);
  });
});

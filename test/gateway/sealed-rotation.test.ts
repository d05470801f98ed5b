import assert from "node:assert/strict";
import { test } from "node:test";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { logRecords } from "../log-records.ts";
import { startTestGateway } from "../start.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { clientOf, paymentTold, sendCallback } from "./callers.ts";

test("after a password change all is read while the old password is a previous one, then all but the secrets", async (t) => {
  const DATA_DIR = directory(t);
  const { log, records } = logRecords("warn");
  const logged = () => records.filter(({ what }) => what);
  const serve = async (password: string, previous = "") => {
    const env = { DATA_DIR, ALLOW_VOLATILE: "", UPSTREAM_PASSWORD: password };
    const gateway = await startTestGateway(
      { ...env, UPSTREAM_PREVIOUS_PASSWORDS: previous },
      {},
      log,
    );
    const json = async (path: string, method = "GET") => {
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${gateway.adminUrl}/dead-letters${path}`, { method, headers });
      return { status: response.status, body: await response.json() };
    };
    return {
      ...{ gateway, json },
      async tokenOf(externalId: string) {
        const { payment } = await clientOf(PaymentService, gateway).getPayment({ externalId });
        assert.equal(payment?.externalId, externalId);
        return payment.paymentMethod?.ccToken?.token;
      },
      tell: (externalId: string) =>
        sendCallback(
          gateway,
          {
            ...paymentTold(externalId),
            payment_method: { type: "cc_token", cc_token: { token: `token of ${externalId}` } },
          },
          { password },
        ),
      locked: async (what: string) =>
        (await scrapeOf(gateway)).sum("sealed_locked_total", { what }),
    };
  };

  const before = await serve("old");
  await before.tell("before");
  await sendCallback(before.gateway, "not JSON", { password: "old" });
  const { id } = (await before.json("?account=default")).body.dead_letters[0];
  const letter = `/default/${id}`;
  await before.gateway.stop();

  const during = await serve("new", "old");
  await during.tell("during");
  assert.equal(await during.tokenOf("before"), "token of before");
  const body = Buffer.from("not JSON").toString("base64");
  assert.equal((await during.json(`${letter}?raw=true`)).body.body, body);
  assert.deepEqual([await during.locked("event"), await during.locked("dead_letter")], [0, 0]);
  assert.deepEqual(logged(), []);
  await during.gateway.stop();

  const dropped = await serve("new");
  t.after(() => dropped.gateway.stop());
  assert.equal(await dropped.tokenOf("before"), undefined);
  assert.equal(await dropped.tokenOf("during"), "token of during");
  const { status, body: shown } = await dropped.json(`${letter}?raw=true`);
  assert.deepEqual([status, shown.locked, shown.body], [200, true, undefined]);
  const replay = await dropped.json(`${letter}/replay`, "POST");
  assert.deepEqual(replay, { status: 422, body: { outcome: "locked" } });
  assert.equal((await dropped.json(`${letter}?raw=true`)).status, 200, "it stays");
  assert.equal(await dropped.locked("event"), 1);
  assert.ok((await dropped.locked("dead_letter")) > 2);
  assert.deepEqual(
    logged()
      .map(({ account, what }) => [account, what])
      .toSorted(),
    [
      ["default", "dead_letter"],
      ["default", "event"],
    ],
  );
});

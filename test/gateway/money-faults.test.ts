import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Gateway } from "../../src/app/gateway.ts";
import { OutcomeUnknownSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import { PaymentMethodType, PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { between, seeded } from "../random.ts";
import { startTestGateway } from "../start.ts";
import { type MoneyFault, type MoneyUpstream, startMoneyUpstream } from "./money-upstream.ts";

/** Payments per fault: 300 in the long form, `npm run faults`. */
const tries = Number(process.env.MONEY_TRIES ?? 3);
const seed = Number(process.env.SEED ?? 1);

const unanswered = [
  ...(["resetBefore", "resetAfter", "stall", "html502", "truncated"] as const),
  // HTTP 200 with an Error object about a failure of the service itself.
  ...(["okOpen", "okOpenUncharged"] as const),
];
/** `okRejected`: HTTP 200 with an Error object that rejects. The spec ties no status to errors. */
const refused = {
  ...{ errorObject: Code.FailedPrecondition, okRejected: Code.FailedPrecondition },
  tooMany: Code.ResourceExhausted,
} as const;

const settings = {
  ...{ UPSTREAM_LOGIN: "shop", UPSTREAM_PASSWORD: "password", UPSTREAM_TIMEOUT: "2s" },
  ...{ RATE_LIMIT_INITIAL: "1000", RECONCILE_AFTER: "500ms", AUTH_MODE: "none" },
};

describe(`payments whose answers get lost (SEED=${seed})`, { timeout: 1_800_000 }, () => {
  let upstream: MoneyUpstream;
  let gateway: Gateway;
  /** One connection for all calls. */
  let rpc: Client<typeof PaymentService>;
  const random = seeded(seed);
  const unknown: string[] = [];

  before(async () => {
    upstream = await startMoneyUpstream("password");
    gateway = await startTestGateway({ ...settings, UPSTREAM_URL: upstream.url });
    rpc = createClient(PaymentService, createGrpcTransport({ baseUrl: gateway.rpcUrl }));
    // While the service is down, its look-ups fail, so no outcome is settled.
    upstream.down = true;
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  const requestOf = (externalId: string, amount = "10.00") => ({
    ...{ amount, currency: "UAH", mode: PaymentMode.HOSTED, externalId },
    paymentMethod: { type: PaymentMethodType.CC_NUMBER },
  });

  async function pay(externalId: string): Promise<unknown> {
    const amount = `${between(random, 1, 99)}.${between(random, 10, 99)}`;
    return rpc.createPayment(requestOf(externalId, amount));
  }

  /** Makes a payment between successful ones, which keep the circuit breaker closed. */
  async function tryOne(fault: MoneyFault, n: number): Promise<[string, unknown]> {
    const externalId = `${fault}-${n}`;
    for (const other of [1, 2, 3]) await pay(`none-${externalId}-${other}`).catch(() => {});
    for (;;) {
      const error = await pay(externalId).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (upstream.arrivals.has(externalId)) return [externalId, error];
      // The call was not sent, so its outcome is not unknown.
      assert.ok(
        error instanceof ConnectError && error.findDetails(OutcomeUnknownSchema).length === 0,
      );
      await delay(100);
      await pay(`none-${externalId}-${performance.now()}`).catch(() => {});
    }
  }

  for (const fault of unanswered) {
    test(`${fault} ends a payment with UNKNOWN and OutcomeUnknown, ${tries} times`, async () => {
      for (let from = 0; from < tries; from += 10) {
        const batch = Array.from({ length: Math.min(10, tries - from) }, (_, n) => from + n);
        for (const [id, error] of await Promise.all(batch.map((n) => tryOne(fault, n)))) {
          assert.ok(error instanceof ConnectError, `${id}: ${error}`);
          assert.equal(error.code, Code.Unknown, `${id}: ${error}`);
          assert.equal(error.findDetails(OutcomeUnknownSchema)[0]?.externalId, id);
          const { payment, outcomeUnknown } = await rpc.getPayment({ externalId: id });
          assert.deepEqual([payment, outcomeUnknown], [undefined, true]);
          unknown.push(id);
        }
      }
    });
  }

  for (const [fault, code] of Object.entries(refused)) {
    test(`${fault} is a refusal, not an unknown outcome, ${tries} times`, async () => {
      for (let n = 0; n < tries; n++) {
        const [id, error] = await tryOne(fault as MoneyFault, n);
        assert.equal((error as ConnectError).code, code);
        assert.equal(upstream.charges.has(id), false);
        await assert.rejects(rpc.getPayment({ externalId: id }), { code: Code.NotFound });
      }
    });
  }

  test(`a call whose connection is refused is not sent and frees its key, ${tries} times`, async (t) => {
    const other = await startMoneyUpstream("password");
    const gateway = await startTestGateway({ ...settings, UPSTREAM_URL: other.url });
    t.after(async () => {
      await gateway.stop();
      await other.close();
    });
    const client = createClient(PaymentService, createGrpcTransport({ baseUrl: gateway.rpcUrl }));
    const pay = (externalId: string) =>
      client.createPayment(requestOf(externalId), { headers: { "idempotency-key": externalId } });
    // More calls succeed than fail, so that the circuit breaker stays closed.
    const goWell = async (n: string) => {
      for (let m = 0; m < 8; m++) await pay(`none-well-${n}-${m}`);
    };
    for (let from = 0; from < tries; from += 6) {
      await goWell(`${from}`);
      const ids = Array.from({ length: Math.min(6, tries - from) }, (_, n) => `none-${from + n}`);
      await other.leave();
      for (const id of ids) {
        await assert.rejects(pay(id), (error) => {
          assert.ok(error instanceof ConnectError);
          assert.equal(error.code, Code.Unavailable);
          assert.match(error.message, /cannot be reached/, "it was tried");
          assert.equal(error.findDetails(OutcomeUnknownSchema).length, 0);
          return true;
        });
        await assert.rejects(client.getPayment({ externalId: id }), { code: Code.NotFound });
        assert.equal(other.arrivals.has(id), false);
      }
      await other.comeBack();
      for (const id of ids) {
        const { payment } = await pay(id);
        assert.equal(payment?.details?.status, PaymentStatus.SUCCESS, "its key was free");
      }
    }
    for (const [id, charges] of other.charges) assert.equal(charges, 1, id);
  });

  test("all outcomes are settled within 60 s of the service's recovery, and none is charged twice", async (t) => {
    upstream.down = false;
    const since = performance.now();
    for (const externalId of unknown) {
      const charged = upstream.charges.has(externalId);
      for (;;) {
        const known = await rpc
          .getPayment({ externalId })
          .catch((error: unknown) => (error as ConnectError).code);
        if (known === Code.NotFound) {
          assert.ok(!charged, `${externalId} is lost`);
          break;
        }
        assert.ok(typeof known === "object", String(known));
        assert.notEqual(known.payment?.details?.status, PaymentStatus.FAILURE);
        if (!known.outcomeUnknown) {
          assert.ok(charged);
          assert.equal(known.payment?.details?.status, PaymentStatus.SUCCESS);
          break;
        }
        await delay(20);
      }
    }
    const ms = Math.round(performance.now() - since);
    t.diagnostic(`${unknown.length} of unknown outcome settled within ${ms} ms`);
    assert.ok(ms < 60_000, `${ms} ms`);
    assert.equal(unknown.length, unanswered.length * tries);
    for (const [id, charges] of upstream.charges) assert.equal(charges, 1, id);
    for (const id of unknown) assert.equal(upstream.arrivals.get(id), 1, id);
  });
});

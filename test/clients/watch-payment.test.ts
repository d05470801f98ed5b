import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { EventSource } from "undici";
import { type PaymentWatcher, watchPayment } from "../../clients/graphql/src/watch-payment.ts";
import type { Core } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import { PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import { paymentEvent, refusing } from "../graphql/feed.ts";
import { serve } from "../graphql/serve.ts";
import { until } from "../until.ts";

Object.assign(globalThis, { EventSource });

/** What a page hears of a watch. */
async function heard(t: TestContext, core: Partial<Core>) {
  const gateway = await serve(t, core);
  const cursors: string[] = [];
  const refusals: string[] = [];
  const watcher: PaymentWatcher = {
    onEvent: ({ cursor }) => cursors.push(cursor),
    onRefused: (message) => refusals.push(message),
  };
  t.after(watchPayment(gateway.url, "order-1", "token", watcher));
  return { cursors, refusals };
}

test("a watch whose cursor has expired begins again without it", async (t) => {
  const { PENDING, SUCCESS } = PaymentStatus;
  let opened = 0;
  const { cursors, refusals } = await heard(t, {
    async *watchPayment({ afterCursor }, { onOpen, signal }) {
      if (afterCursor) throw new GatewayError("OUT_OF_RANGE", "the cursor has expired");
      onOpen?.(undefined);
      opened += 1;
      yield opened === 1 ? paymentEvent("c-1", PENDING) : paymentEvent("d-1", SUCCESS);
      if (opened === 1) throw new GatewayError("UNAVAILABLE", "the log is lost");
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
    },
  });
  await until(() => cursors.length === 2);
  assert.deepEqual([cursors, refusals], [["c-1", "d-1"], []]);
});

test("a watch that is refused says why", async (t) => {
  const { refusals } = await heard(t, refusing("PERMISSION_DENIED"));
  await until(() => refusals.length > 0);
  assert.deepEqual(refusals, ["refused"]);
});

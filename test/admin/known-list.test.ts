import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { knownListOf } from "../../src/admin/known-list.ts";
import type { Core } from "../../src/core/core.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { GetPaymentResponseSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";

const at = { seconds: 1n, nanos: 0 };

/** A core that knows this many payments, `order-0` and so on, each with two attempts. */
function coreOf(count: number) {
  const asked: number[] = [];
  const listPayments: Core["listPayments"] = async ({ pageSize, pageToken }) => {
    const from = Number(pageToken);
    asked.push(from);
    const to = Math.min(from + pageSize, count);
    const edges = Array.from({ length: to - from }, (_, index) => {
      const number = from + index;
      const node = create(GetPaymentResponseSchema, {
        state: PaymentState.PAID,
        operations: [{ paymentId: `first-${number}` }, { paymentId: `second-${number}` }],
      });
      const externalId = `order-${number}`;
      return { cursor: `${number}`, node, externalId, firstSeenAt: at, updatedAt: at };
    });
    const hasNextPage = to < count;
    const endCursor = hasNextPage ? `${to}` : undefined;
    return { edges, hasNextPage, hasPreviousPage: from > 0, endCursor };
  };
  const listPayouts: Core["listPayouts"] = () => Promise.reject(new Error("not asked for"));
  return { asked, core: { listPayments, listPayouts } };
}

test("a search goes through 1,000 payments, and on from there when asked", async () => {
  const { asked, core } = coreOf(1_500);
  const search = "first-1234";
  const page = await knownListOf(core, "default", "payment", { search });
  assert.deepEqual([page.items, page.searched, page.next], [[], 1_000, "1000"]);
  const further = await knownListOf(core, "default", "payment", { search, after: page.next });
  const [found] = further.items;
  assert.deepEqual([found?.externalId, found?.state], ["order-1234", "paid"]);
  assert.deepEqual([further.searched, further.next], [500, undefined]);
  assert.equal(asked.length, 30);
});

test("a list without a search asks for one page alone", async () => {
  const { asked, core } = coreOf(1_500);
  const page = await knownListOf(core, "default", "payment", {});
  assert.deepEqual([page.items.length, page.next, asked.length], [50, "50", 1]);
});

test("a state that there is not is refused, before anything is listed", async () => {
  const { asked, core } = coreOf(10);
  for (const state of ["payed", "PAID", "unspecified"]) {
    await assert.rejects(
      knownListOf(core, "default", "payment", { state }),
      /^Refused: state: there is no such state of a payment/,
    );
  }
  assert.deepEqual(asked, []);
  assert.equal((await knownListOf(core, "default", "payment", { state: "paid" })).items.length, 10);
});

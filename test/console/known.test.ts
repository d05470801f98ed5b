import assert from "node:assert/strict";
import { test } from "node:test";
import { knownList } from "../../console/known.ts";

const { signal } = new AbortController();
const all = { state: "", search: "", after: undefined };

/** A gateway that knows this many payments, `order-0` and so on, each with two attempts. */
function clientOf(count: number) {
  const asked: object[] = [];
  const query = async <T>(_: string, variables: object) => {
    asked.push(variables);
    const { first, after = "0" } = variables as { first: number; after?: string };
    const to = Math.min(Number(after) + first, count);
    const edges = Array.from({ length: to - Number(after) }, (_, index) => {
      const number = Number(after) + index;
      const ids = [{ paymentId: `first-${number}` }, { paymentId: `second-${number}` }];
      const node = { externalId: `order-${number}`, state: "PAID", needsOperator: false };
      return { firstSeenAt: "2026-01-31T12:00:00Z", node: { ...node, operations: ids } };
    });
    return { list: { edges, pageInfo: { hasNextPage: to < count, endCursor: `${to}` } } } as T;
  };
  return { asked, client: { query } };
}

test("a search goes through 1,000 payments, and on from there when asked", async () => {
  const { asked, client } = clientOf(1_500);
  const search = "first-1234";
  const page = await knownList(client, "shop", "payment", { ...all, search }, signal);
  assert.deepEqual([page.items, page.searched, page.next], [[], 1_000, "1000"]);
  const on = { ...all, search, after: page.next };
  const further = await knownList(client, "shop", "payment", on, signal);
  const [found] = further.items;
  assert.deepEqual([found?.externalId, found?.state], ["order-1234", "PAID"]);
  assert.deepEqual([further.searched, further.next], [500, undefined]);
  assert.equal(asked.length, 30);
});

test("a list without a search asks for one page alone, of the state", async () => {
  const { asked, client } = clientOf(1_500);
  for (const state of ["", "paid", "needs_operator"]) {
    const page = await knownList(client, "shop", "payment", { ...all, state }, signal);
    assert.deepEqual([page.items.length, page.next], [50, "50"]);
  }
  assert.deepEqual(
    asked,
    [{}, { states: ["PAID"] }, { needsOperator: true }].map((filter) => ({
      ...{ filter, first: 50, after: undefined },
    })),
  );
});

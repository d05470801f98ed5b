import assert from "node:assert/strict";
import { test } from "node:test";
import { type Merge, merge } from "../../src/ledger/merge.ts";

type Step = Parameters<typeof merge>[1];

/** A step as `status`, or `status operation_id`. */
function step(text: string): Step {
  const [status = "", operationId = ""] = text.split(" ");
  const ranks: Readonly<Record<string, Step["rank"]>> = {
    new: -1,
    init: 0,
    success: 2,
    failure: 2,
  };
  return { status, operationId, rank: ranks[status] ?? 1 };
}

/** What an entry does to a state: words that hold of it. */
const table: readonly (readonly [state: string, entry: string, is: string])[] = [
  ["init", "pending", "replaces"],
  ["processing", "approved", "replaces"],
  ["approved", "processing", "replaces"],
  ["pending", "init", "late"],
  ["success", "pending", "late"],
  ["success", "success", "replaces"],
  ["failure", "success", "replaces conflict"],
  ["success", "failure", "conflict"],
  // Of two that name their operation each may end in its own way; one that does not is the same.
  ["success a", "failure a", "conflict"],
  ["success a", "failure b", ""],
  ["failure a", "success b", "replaces"],
  ["success a", "failure", "conflict"],
  ["success", "failure a", "conflict"],
  ["success a", "pending b", ""],
  ["success a", "pending", "late"],
  ["success", "pending a", "late"],
  ["success", "new", ""],
  ["new", "pending", "replaces"],
];

for (const [state, entry, is] of table) {
  test(`${entry} after ${state}: ${is || "nothing"}`, () => {
    const done: Merge = merge(step(state), step(entry));
    const words = Object.entries(done).flatMap(([word, holds]) => (holds ? word : []));
    assert.deepEqual(words.sort(), is.split(" ").filter(Boolean).sort());
  });
}

test("the first entry of an operation becomes its state", () => {
  const first = { replaces: true, late: false, conflict: false };
  assert.deepEqual(merge(undefined, step("failure")), first);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExchangeFailure } from "../../src/upstream/exchange.ts";
import { verdictOf } from "../../src/upstream/outcome.ts";

const failed = (failure: ExchangeFailure["failure"]): ExchangeFailure => ({
  ...{ failure, sent: true, head: undefined, cause: undefined },
});
const left = failed("caller");

test("a caller that leaves after 5 s counts as an upstream time-out, before that as nothing", () => {
  assert.equal(verdictOf(left, 0), "nothing");
  assert.equal(verdictOf(left, 4_999), "nothing");
  assert.equal(verdictOf(left, 5_000), "failed");
});

test("a call that the gateway stops is no failure of the service, one that it waits for in vain is", () => {
  for (const [failure, verdict] of [
    [failed("kept"), "nothing"],
    [failed("tooLarge"), "answered"],
    [failed("timeout"), "failed"],
    [failed("connection"), "failed"],
  ] as const) {
    assert.equal(verdictOf(failure, 0), verdict, failure.failure);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { ExchangeFailure } from "../../src/upstream/exchange.ts";
import { verdictOf } from "../../src/upstream/verdict.ts";

const left = new ExchangeFailure("caller", true, undefined, undefined);

test("a caller that leaves after 5 s counts as an upstream time-out, before that as nothing", () => {
  assert.equal(verdictOf(left, 0), "nothing");
  assert.equal(verdictOf(left, 4_999), "nothing");
  assert.equal(verdictOf(left, 5_000), "timeout");
});

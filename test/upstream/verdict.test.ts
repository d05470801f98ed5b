import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExchangeFailure } from "../../src/upstream/exchange.ts";
import { verdictOf } from "../../src/upstream/outcome.ts";

const failed = (failure: ExchangeFailure["failure"], code?: string): ExchangeFailure => ({
  ...{ failure, sent: true, head: undefined },
  cause: code && Object.assign(new Error(code), { code }),
});
const left = failed("caller");

test("a caller that leaves after 5 s counts as an upstream time-out, before that as nothing", () => {
  assert.equal(verdictOf(left, 0), "nothing");
  assert.equal(verdictOf(left, 4_999), "nothing");
  assert.equal(verdictOf(left, 5_000), "timeout");
});

test("a call that the gateway stops is no failure of the service, one that it waits for in vain is", () => {
  for (const [failure, verdict] of [
    [failed("kept"), "nothing"],
    [failed("tooLarge"), "answered"],
    [failed("timeout"), "timeout"],
    [failed("connection"), "failed"],
    [failed("connection", "ECONNREFUSED"), "failed"],
    [failed("connection", "ETIMEDOUT"), "timeout"],
  ] as const) {
    assert.equal(verdictOf(failure, 0), verdict, failure.failure);
  }
});

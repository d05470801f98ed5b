import assert from "node:assert/strict";
import { test } from "node:test";
import { askedTimeoutMs } from "../../src/net/timeout-header.ts";

const asked: readonly (readonly [headers: Record<string, string>, ms: number])[] = [
  [{}, Number.POSITIVE_INFINITY],
  [{ "connect-timeout-ms": "250" }, 250],
  [{ "grpc-timeout": "250m" }, 250],
  [{ "grpc-timeout": "2S", "connect-timeout-ms": "3000" }, 2_000],
  [{ "grpc-timeout": "soon", "connect-timeout-ms": "-1" }, Number.POSITIVE_INFINITY],
];

for (const [headers, ms] of asked) {
  test(`headers ${JSON.stringify(headers)} ask for ${ms} ms`, () => {
    assert.equal(askedTimeoutMs(headers), ms);
  });
}

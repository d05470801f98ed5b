import assert from "node:assert/strict";
import { test } from "node:test";
import { askedTimeoutMs, capTimeout } from "../../src/net/timeout-header.ts";

const cases: readonly (readonly [name: string, given: string, capped: string])[] = [
  ["connect-timeout-ms", "299999", "299999"],
  ["connect-timeout-ms", "300001", "300000"],
  ["connect-timeout-ms", "9999999999", "300000"],
  ["connect-timeout-ms", "99999999999", "99999999999"],
  ["connect-timeout-ms", "soon", "soon"],
  ["grpc-timeout", "300S", "300S"],
  ["grpc-timeout", "301S", "300S"],
  ["grpc-timeout", "99999999H", "300S"],
  ["grpc-timeout", "6M", "300S"],
  ["grpc-timeout", "99999999n", "99999999n"],
  ["grpc-timeout", "300001m", "300S"],
  ["grpc-timeout", "1d", "1d"],
  ["grpc-timeout", "", ""],
];

for (const [name, given, capped] of cases) {
  test(`a limit of five minutes turns ${name} "${given}" into "${capped}"`, () => {
    const headers = { [name]: given };
    capTimeout(headers, 300_000);
    assert.deepEqual(headers, { [name]: capped });
  });
}

test("a time-out header of one protocol does not hide that of another", () => {
  const headers = { "connect-timeout-ms": "10", "grpc-timeout": "301S" };
  capTimeout(headers, 300_000);
  assert.deepEqual(headers, { "connect-timeout-ms": "10", "grpc-timeout": "300S" });
});

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

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { plainDecimal, quoteNumbers } from "../../src/wire/number.ts";

describe("a number's plain decimal text", () => {
  const texts: Array<[source: string, plain: string | undefined]> = [
    ["10.10", "10.10"],
    ["-0", "-0"],
    ["12345678901234567890.000", "12345678901234567890.000"],
    ["1e2", "100"],
    ["1E+2", "100"],
    ["1.50e1", "15.0"],
    ["1.5e-3", "0.0015"],
    ["-2e-1", "-0.2"],
    ["12.345e2", "1234.5"],
    ["12.345e3", "12345"],
    ["1.0e0", "1.0"],
    ["0e5", "0"],
    ["0.05e1", "0.5"],
    ["0.05e3", "50"],
    ["-0e0", "-0"],
    ["1e40", `1${"0".repeat(40)}`],
    ["1e41", undefined],
    ["1e-41", undefined],
    ["1e99999999999999999999", undefined],
  ];
  for (const [source, plain] of texts) {
    it(`of ${source} is ${plain ?? "none"}`, () => assert.equal(plainDecimal(source), plain));
  }

  it("is the same value", () => {
    const digits = fc.integer({ min: 0, max: 999_999 });
    const exponent = fc.integer({ min: -12, max: 12 });
    fc.assert(
      fc.property(digits, fc.nat(9_999), exponent, (whole, fraction, power) => {
        const source = `${whole}.${fraction}e${power}`;
        const plain = plainDecimal(source);
        assert.match(plain ?? "", /^(0|[1-9]\d*)(\.\d+)?$/);
        assert.equal(Number(plain), Number(source));
      }),
    );
  });
});

describe("quoting the numbers of a JSON text", () => {
  it("changes numbers into strings of their text and nothing else", () => {
    const reviver = (_key: string, value: unknown, context?: { source?: string }) =>
      typeof value === "number" ? context?.source : value;
    fc.assert(
      fc.property(fc.json(), (text) => {
        const revived = JSON.parse(text, reviver as (key: string, value: unknown) => unknown);
        const own = JSON.parse(quoteNumbers(text));
        assert.equal(JSON.stringify(own), JSON.stringify(revived));
      }),
      { numRuns: 2_000 },
    );
  });
});

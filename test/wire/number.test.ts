import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { plainDecimal, quoteNumbers, soleNumber } from "../../src/wire/number.ts";

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

  it("has the same value", () => {
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

describe("the number of the only member of a name", () => {
  /** A JSON string, with some of its characters as escapes. */
  const written = (text: string, escaped: boolean) =>
    escaped
      ? `"${[...text].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")}"`
      : JSON.stringify(text);
  const texts = fc.constantFrom("amount", "am", 'amount"', '"amount":5', "amount\\", ":5", "");
  const string = fc.tuple(texts, fc.integer({ max: 9 })).map(([text, n]) => written(text, n === 9));
  const number = fc.constantFrom(
    "0",
    "-0",
    "10.10",
    "5.0",
    "1.5e+3",
    "1E-7",
    "12345678901234567890",
  );
  const space = fc.constantFrom("", " ", "\n\t");
  const { value } = fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      ...[number, number, string, fc.constantFrom("true", "null")],
      fc.array(tie("value"), { maxLength: 3 }).map((items) => `[${items.join(",")}]`),
      fc
        // If a member is repeated, V8 sometimes keeps the first one.
        .uniqueArray(fc.tuple(string, space, space, tie("value")), {
          maxLength: 3,
          selector: ([name]) => JSON.parse(name) as string,
        })
        .map((members) => members.map(([name, a, b, item]) => `${name}${a}:${b}${item}`).join(","))
        .map((members) => `{${members}}`),
    ),
  }));

  it("is returned as its own text, or not at all", () => {
    let told = 0;
    fc.assert(
      fc.property(value, (text) => {
        const sole = soleNumber(text, "amount");
        if (sole === undefined) return;
        const all = numbersOf("amount", JSON.parse(text), JSON.parse(quoteNumbers(text)));
        // The member may be in an object that another one of the same name has replaced.
        if (all.length === 0) return;
        told += 1;
        assert.deepEqual(all, [sole], text);
      }),
      { numRuns: 20_000 },
    );
    assert.ok(told > 100, `told of ${told}`);
  });

  for (const [what, text] of [
    ["a member that comes twice", '{"amount":1,"amount":1.0}'],
    ["a text of that name", '{"amount":1,"type":"amount"}'],
    ["a member that is no number", '{"amount":"1"}'],
    ["a name that is written with escapes", '{"fee":{"amount":1.0},"\\u0061mount":1}'],
    ["no such member", '{"am":1}'],
  ] as const) {
    it(`is undefined for ${what}`, () => assert.equal(soleNumber(text, "amount"), undefined));
  }
});

/** The texts of all numbers under this name. `quoted` is the same JSON with its numbers quoted. */
function numbersOf(name: string, json: unknown, quoted: unknown): unknown[] {
  if (typeof json !== "object" || json === null) return [];
  return Object.entries(json).flatMap(([key, item]) => {
    const own = (quoted as Record<string, unknown>)[key];
    return key === name && typeof item === "number" ? [own] : numbersOf(name, item, own);
  });
}

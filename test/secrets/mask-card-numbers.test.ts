import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { maskCardNumbers } from "../../src/secrets/mask-card-numbers.ts";

const cases: Array<[text: string, masked: string]> = [
  ["card 4111111111111111 is expired", "card 411111******1111 is expired"],
  ["4111 1111 1111 1111", "4111 11** **** 1111"],
  ["4111-1111-1111-1111.", "4111-11**-****-1111."],
  ["pan=378282246310005", "pan=378282*****0005"],
  ["4111 1111 1111 1111 12/25", "4111 11** **** 1111 12/25"],
  ["5 4111 1111 1111 1111", "5 4111 11** **** 1111"],
  ["4111111111111111,5555555555554444", "411111******1111,555555******4444"],
  ["41111111111111111225000", "411111*************5000"],
  ["order 4111111111111112", "order 4111111111111112"],
  ["10 of 12", "10 of 12"],
  ["", ""],
];

for (const [text, masked] of cases) {
  test(`shows ${JSON.stringify(text)} as ${JSON.stringify(masked)}`, () => {
    assert.equal(maskCardNumbers(text), masked);
  });
}

/** Separators that people and programs group digits with. */
const single = [
  ...[" ", "\t", "-", ".", "/", "_", "+"],
  ...[
    "\u00a0",
    "\u2007",
    "\u2009",
    "\u202f",
    "\u205f",
    "\u3000",
    "\u200b",
    "\u2060",
    "\ufeff",
    "\u00ad",
  ],
  ...["\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2212", "\u00b7"],
];

test("no number of 12 to 19 digits that passes the Luhn check is shown", () => {
  const number = fc
    .array(fc.integer({ min: 0, max: 9 }), { minLength: 11, maxLength: 18 })
    .map((digits) => digits.join("") + checkDigit(digits));
  const separators = ["", ...single, ...single.map((one) => one + one)];
  fc.assert(
    fc.property(number, (digits) => {
      for (const separator of separators) {
        const shown = digits.match(/.{1,4}/g)!.join(separator);
        const text = maskCardNumbers(`refused: ${shown}!`);
        const left = text.replace(/\D/g, "");
        assert.ok(left.length <= 10, text);
        assert.equal(left, digits.slice(0, 6) + digits.slice(-4));
      }
    }),
  );
});

function checkDigit(digits: number[]): string {
  const sum = digits.reduceRight((total, digit, index) => {
    const weighted = (digits.length - 1 - index) % 2 === 0 ? digit * 2 : digit;
    return total + (weighted > 9 ? weighted - 9 : weighted);
  }, 0);
  return String((10 - (sum % 10)) % 10);
}

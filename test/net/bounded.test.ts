import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CreatePaymentRequestSchema,
  ListPaymentsRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { excessOfJson } from "../../src/net/bounded-json.ts";
import { excessOfBinary } from "../../src/rpc/bounded-binary.ts";

const values = /^holds more than 10000 values$/;
const depth = /^is nested more than 64 levels deep$/;

const texts: readonly (readonly [what: string, text: string, excess: RegExp | undefined])[] = [
  ["as many values as may be", `[${"1,".repeat(9_998)}1]`, undefined],
  ["a value more", `[${"1,".repeat(10_000)}1]`, values],
  ["objects", `[${"{},".repeat(5_001)}{}]`, values],
  ["members", `{${Array.from({ length: 10_001 }, (_, n) => `"m${n}":0`).join()}}`, values],
  ["as deep as may be", `${"[".repeat(64)}"${"x".repeat(1_000)}"${"]".repeat(64)}`, undefined],
  ["a level deeper", `${"[".repeat(65)}"${"x".repeat(1_000)}"${"]".repeat(65)}`, depth],
  ["one after another, not deep", `[${"[[]],".repeat(2_000)}[]]`, undefined],
  ["as many digits as may be", `[${"1".repeat(1_000)}, ""]`, undefined],
  ["more digits", `[${"1".repeat(1_002)}]`, /^holds a number of more than 1000 digits$/],
  ["commas, brackets and digits in a text", `["${",[{1".repeat(20_000)}"]`, undefined],
  ["a text with quotes in it", `["${'\\",'.repeat(20_000)}"]`, undefined],
  ["a text without an end", `["${",".repeat(20_000)}`, undefined],
];
for (const [what, text, excess] of texts) {
  test(`JSON with ${what} is ${excess ? "" : "not "}too much`, () => {
    if (excess) assert.match(excessOfJson(text) ?? "", excess);
    else assert.equal(excessOfJson(text), undefined);
  });
}

/** A field with a length. */
const field = (number: number, content: Buffer) => {
  const varint = (value: number): number[] =>
    value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
  return Buffer.concat([
    Buffer.from([...varint(number * 8 + 2), ...varint(content.length)]),
    content,
  ]);
};
const repeated = (part: Buffer, times: number) => Buffer.concat(Array(times).fill(part));
const products = CreatePaymentRequestSchema.field.products.number;
const empty = Buffer.alloc(0);
/** A field that no message has. */
const unknown = Buffer.from([0x78, 0]);

const messages: readonly (readonly [what: string, bytes: Buffer, excess: RegExp | undefined])[] = [
  ["as many elements as may be", repeated(field(products, empty), 10_000), undefined],
  ["an element more", repeated(field(products, empty), 10_001), values],
  ["unknown fields", repeated(unknown, 10_001), values],
  ["fields of an element", field(products, repeated(unknown, 10_000)), values],
  ["what is in a group", repeated(Buffer.from([0x7b, 0x78, 0, 0x7c]), 3_400), values],
  ["a long text", field(1, Buffer.alloc(100_000, 0x78)), undefined],
  ["bytes that are no message", Buffer.alloc(100_000, 0xff), undefined],
];
for (const [what, bytes, excess] of messages) {
  test(`a binary message with ${what} is ${excess ? "" : "not "}too much`, () => {
    const found = excessOfBinary(CreatePaymentRequestSchema, bytes);
    if (excess) assert.match(found ?? "", excess);
    else assert.equal(found, undefined);
  });
}

test("a binary message with packed elements is too much", () => {
  const states = field(ListPaymentsRequestSchema.field.states.number, Buffer.alloc(10_001, 1));
  assert.match(excessOfBinary(ListPaymentsRequestSchema, states) ?? "", values);
});

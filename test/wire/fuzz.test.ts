import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { create, type DescField, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { OperationSchema } from "../../src/gen/payments/v1/operation_pb.ts";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { decode, decodeList, encode, WireError } from "../../src/wire/wire.ts";
import { BODIES } from "./fixtures.ts";

describe("decode survives", () => {
  for (const [schema] of BODIES) {
    it(`any JSON value in any field of ${schema.name}`, () => {
      fc.assert(
        fc.property(bodyOf(schema), (text) => {
          const message = decode(schema, text, { onFault: ({ path }) => assert.ok(path !== "") });
          const bytes = toBinary(schema, message);
          assert.deepEqual(toBinary(schema, fromBinary(schema, bytes)), bytes);
        }),
        { numRuns: 500 },
      );
    });
  }

  for (const schema of [PaymentSchema, CreatePaymentRequestSchema]) {
    it(`a body of any length: a long ${schema.name} is read as a short one is`, () => {
      fc.assert(
        fc.property(bodyOf(schema), (text) => {
          assert.deepEqual(decode(schema, text + beyondShort), decode(schema, text));
        }),
        { numRuns: 500 },
      );
    });
  }

  it("any text: it throws nothing but a WireError", () => {
    const text = fc.oneof(fc.string({ unit: "binary" }), fc.json(), truncated(fc.json()));
    fc.assert(
      fc.property(text, (body) => {
        for (const read of [decode, decodeList]) {
          try {
            read(PaymentSchema, body);
          } catch (error) {
            assert.ok(error instanceof WireError);
          }
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it("any neighbours of a number in a text field, keeping its digits", () => {
    fc.assert(
      fc.property(fc.json(), decimals, fc.string(), (junk, number, key) => {
        const digits = number.replace(/^(-?)0+(?=\d)/, "$1");
        const members = [`${JSON.stringify(`x${key}`)}:${junk}`, `"id":${digits}`, `"y":${junk}`];
        const body = `{${members.join(",")}}`;
        for (const text of [body, body + beyondShort]) {
          assert.equal(decode(PaymentSchema, text).id, digits);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("a decimal", () => {
  it("that is written with an exponent keeps its value", () => {
    fc.assert(
      fc.property(decimals, fc.integer({ min: -12, max: 12 }), (decimal, power) => {
        const source = `${decimal.replace(/^(-?)0+(?=\d)/, "$1")}e${power}`;
        const { amount = "" } = decode(OperationSchema, `{"details":{"amount":${source}}}`)
          .details!;
        assert.match(amount, /^-?(0|[1-9]\d*)(\.\d+)?$/);
        assert.equal(Number(amount), Number(source));
      }),
    );
  });

  it("keeps its value on the wire and back, and its text if JSON can write it", () => {
    let sameText = 0;
    fc.assert(
      fc.property(decimals, (amount) => {
        const request = create(CreatePaymentRequestSchema, { amount });
        const wire = encode(CreatePaymentRequestSchema, request);
        assert.equal(wire, `{"amount":${wire.slice(10, -1)}}`);
        const back = decode(CreatePaymentRequestSchema, wire).amount;
        assert.equal(back, wire.slice(10, -1), "the digits on the wire are the digits read");
        const answer = decode(OperationSchema, `{"details":${wire}}`).details?.amount;
        assert.equal(answer, back);
        assert.equal(millionths(back), millionths(amount));
        if (/^-?(0|[1-9]\d*)(\.\d+)?$/.test(amount)) {
          assert.equal(back, amount);
          sameText++;
        }
      }),
      { numRuns: 100_000 },
    );
    assert.ok(sameText > 50_000, `only ${sameText} canonical texts were tried`);
  });
});

/** Makes a body so long that the digits of its numbers are found in another way. */
const beyondShort = " ".repeat(16 * 1024);

/** The contract's pattern: up to 15 digits, up to 6 of them behind the point, leading zeros too. */
const decimals = fc
  .tuple(
    fc.boolean(),
    fc.oneof(
      { weight: 1, arbitrary: fc.constant("00") },
      { weight: 4, arbitrary: fc.constant("") },
    ),
    fc.integer({ min: 1, max: 15 }),
    fc.integer({ min: 0, max: 6 }),
    fc.bigInt({ min: 0n, max: 999_999_999_999_999n }),
  )
  .map(([negative, zeros, length, behind, value]) => {
    const all = String(value)
      .slice(0, length)
      .padStart(behind + 1, "0");
    const whole = (zeros + all.slice(0, all.length - behind)).slice(-15);
    const fraction = behind === 0 ? "" : `.${all.slice(-behind)}`;
    return `${negative ? "-" : ""}${whole}${fraction}`;
  });

/** The value in millionths, computed in another way than the codec does. */
function millionths(decimal: string): bigint {
  const [whole = "", fraction = ""] = decimal.replace("-", "").split(".");
  const value = BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, "0"));
  return decimal.startsWith("-") ? -value : value;
}

/** Numbers that a generator of JSON values does not write. */
const oddNumbers = fc.constantFrom(
  "-0",
  "1e400",
  "-1E-400",
  "1.0",
  "10.10",
  "1.5e+3",
  "12345678901234567890",
  "9007199254740993",
  "-9223372036854775809",
);

const likely = fc.constantFrom(
  '""',
  '"2026-11-20"',
  '"success"',
  "true",
  "null",
  "[]",
  "{}",
  "[1]",
);

/** JSON text of a body with members of the type, each with any value or one of the right shape. */
function bodyOf(schema: DescMessage): fc.Arbitrary<string> {
  const members = schema.fields.map((field) =>
    fc
      .option(valueFor(field), { freq: 4 })
      .map((value) => (value === null ? [] : [member(field, value)])),
  );
  return fc.tuple(...members).map((lists) => `{${lists.flat().join(",")}}`);
}

function valueFor(field: DescField): fc.Arbitrary<string> {
  const any = fc.oneof(fc.json({ maxDepth: 2 }), oddNumbers, likely);
  if (!field.message || field.message.typeName.startsWith("google.")) return any;
  const nested = bodyOf(field.message);
  if (field.fieldKind !== "list")
    return fc.oneof({ weight: 1, arbitrary: any }, { weight: 4, arbitrary: nested });
  const list = fc
    .array(fc.oneof(any, nested), { maxLength: 3 })
    .map((items) => `[${items.join(",")}]`);
  return fc.oneof(any, list);
}

function member(field: DescField, value: string): string {
  return `${JSON.stringify(field.name)}:${value}`;
}

function truncated(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(texts, fc.nat()).map(([text, at]) => text.slice(0, at % (text.length + 1)));
}

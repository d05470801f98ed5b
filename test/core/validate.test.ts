import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import {
  field as fieldRules,
  message as messageRules,
  type StringRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { validate } from "../../src/core/validate.ts";
import { type FieldViolation, GatewayError } from "../../src/errors.ts";
import {
  CardSchema,
  ProductSchema,
  RecipientCardNumberSchema,
} from "../../src/gen/payments/v1/payment_input_pb.ts";
import {
  CreatePaymentRequestSchema,
  CreateRecurrentPaymentRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { CardDataSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import { services } from "../../src/rpc/services/routes.ts";

test("each rule over several fields is named after a field of its message", () => {
  const seen = new Set<DescMessage>();
  let rules = 0;
  const visit = (desc: DescMessage) => {
    if (seen.has(desc)) return;
    seen.add(desc);
    if (hasOption(desc, messageRules)) {
      for (const { id } of getOption(desc, messageRules).cel) {
        rules++;
        assertNamesField(desc, id);
      }
    }
    for (const field of desc.fields) if (field.message) visit(field.message);
  };
  for (const service of services) for (const { input } of service.methods) visit(input);
  assert.ok(rules >= 12, `${rules} rules`);
});

test("every text of a request is bounded, every id to 255 bytes, every list to 1,000 items", () => {
  const seen = new Set<DescMessage>();
  const unbound: string[] = [];
  let texts = 0;
  const visit = (desc: DescMessage) => {
    if (seen.has(desc)) return;
    seen.add(desc);
    for (const field of desc.fields) {
      const { type } = getOption(field, fieldRules);
      const list = type.case === "repeated" ? type.value : undefined;
      if (field.fieldKind === "list" && !(list && 0 < list.maxItems && list.maxItems <= 1_000n)) {
        unbound.push(`${field}`);
      }
      if (field.fieldKind === "map" || field.scalar === ScalarType.BYTES) unbound.push(`${field}`);
      if (field.message) visit(field.message);
      if (field.scalar !== ScalarType.STRING) continue;
      texts++;
      const rules = (list?.items?.type ?? type) as { case?: string; value?: StringRules };
      const { maxBytes = 0n, maxLen = 0n, in: set = [] } = rules.value ?? {};
      const most = maxBytes || 4n * maxLen;
      if (set.length === 0 && (most === 0n || most > 16_384n)) unbound.push(`${field}`);
      if (/(^|_)(id|rid)$/.test(field.name) && maxBytes !== 255n) unbound.push(`${field}`);
    }
  };
  for (const service of services) for (const { input } of service.methods) visit(input);
  assert.ok(texts >= 100, `${texts} texts`);
  assert.deepEqual(unbound, []);
});

test("no field has a plain pattern, which a refusal would show as a regular expression", () => {
  const plain = new Set<string>();
  const visit = (desc: DescMessage) => {
    for (const field of desc.fields) {
      const { type } = getOption(field, fieldRules);
      const rules = type.case === "repeated" ? type.value.items?.type : type;
      if (rules?.case === "string" && rules.value.pattern !== "") plain.add(`${field}`);
      if (field.message) visit(field.message);
    }
  };
  for (const service of services) for (const { input } of service.methods) visit(input);
  assert.deepEqual([...plain], []);
});

const wrongNumber = {
  path: "number",
  message: "must be a card number: 8 to 19 digits without spaces or dashes",
};
const cards: readonly [DescMessage, Record<string, unknown>, FieldViolation[]][] = [
  [
    CardSchema,
    { number: "4111 1111 1111 1111", cvv: "12", expMonth: 1, expYear: 2031 },
    [{ path: "cvv", message: "must be 3 or 4 digits" }, wrongNumber],
  ],
  [RecipientCardNumberSchema, { number: "4111-11" }, [wrongNumber]],
  [CardDataSchema, { number: "4111-11" }, [wrongNumber]],
];

for (const [schema, message, fields] of cards) {
  test(`a wrong number or code in ${schema.name} is told in words`, () => {
    assert.throws(
      () => validate(schema, create(schema, message)),
      (error) => {
        assert.ok(error instanceof GatewayError);
        assert.deepEqual(error.details.fields, fields);
        return true;
      },
    );
  });
}

function assertNamesField(desc: DescMessage, id: string): void {
  const path = id.split(".").slice(0, -1);
  // A rule id without a path names no field: only a message that is itself a field may have one.
  assert.ok(path.length > 0 || !desc.name.endsWith("Request"), id);
  let at: DescMessage | undefined = desc;
  for (const name of path) {
    assert.ok(at, id);
    const known: DescMessage = at;
    const field = known.fields.find((f) => f.name === name);
    const oneof = known.oneofs.find((o) => o.name === name);
    assert.ok(field ?? oneof, `${known.typeName} has no ${name} (rule ${id})`);
    at = field?.message;
  }
}

const decimals: [text: string, valid: boolean][] = [
  ["10.10", true],
  ["0.1", true],
  ["99999999999.99", true],
  ["-5", true],
  ["0", true],
  ["000000000000001", true],
  ["123456789012345", true],
  ["999999999.999999", true],
  ["0.000001", true],
  ["1234567890123456", false],
  ["12345678901234.56", false],
  ["1234567890.123456", false],
  ["1.1234567", false],
  [".5", false],
  ["5.", false],
  ["+1", false],
  ["1e3", false],
  ["1,0", false],
  [" 1", false],
  ["1\n", false],
  ["NaN", false],
  ["١", false],
];

for (const [amount, valid] of decimals) {
  test(`${JSON.stringify(amount)} is ${valid ? "" : "no "}decimal`, () => {
    const request = create(CreateRecurrentPaymentRequestSchema, {
      recurrentId: "r",
      externalId: "e",
      amount,
    });
    const check = () => validate(CreateRecurrentPaymentRequestSchema, request);
    if (valid) check();
    else {
      assert.throws(check, (error) => {
        assert.ok(error instanceof GatewayError && error.code === "INVALID_ARGUMENT");
        assert.deepEqual(
          error.details.fields?.map(({ path }) => path),
          ["amount"],
        );
        return true;
      });
    }
  });
}

test("a list of more than 1,000 items is refused before its items are checked", () => {
  const refusal = (length: number) => {
    const products = Array.from({ length }, () =>
      create(ProductSchema, { netAmount: "no number" }),
    );
    try {
      validate(CreatePaymentRequestSchema, create(CreatePaymentRequestSchema, { products }));
    } catch (error) {
      assert.ok(error instanceof GatewayError);
      return error.details.fields ?? [];
    }
    return [];
  };
  assert.deepEqual(refusal(1_001), [{ path: "products", message: "must have at most 1000 items" }]);
  assert.ok(refusal(1_000).some(({ path }) => path === "products[999].net_amount"));
});

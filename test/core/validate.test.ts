import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  field as fieldRules,
  message as messageRules,
  type StringRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { validate } from "../../src/core/validate.ts";
import { type FieldViolation, GatewayError } from "../../src/errors.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { CreateWatchTokenRequestSchema } from "../../src/gen/payments/v1/event_service_pb.ts";
import {
  CardSchema,
  ProductSchema,
  RecipientCardNumberSchema,
} from "../../src/gen/payments/v1/payment_input_pb.ts";
import {
  CreatePaymentRequestSchema,
  CreateRecurrentPaymentRequestSchema,
  WatchPaymentRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { CardDataSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import { services } from "../../src/rpc/services/routes.ts";

/** The messages of all requests, each once. */
const messages = new Set<DescMessage>();
const visit = (desc: DescMessage) => {
  if (messages.has(desc)) return;
  messages.add(desc);
  for (const field of desc.fields) if (field.message) visit(field.message);
};
for (const { input } of services.flatMap(({ methods }) => methods)) visit(input);
const fields = [...messages].flatMap((desc) => desc.fields);

test("each rule over several fields is named after a field of its message", () => {
  let rules = 0;
  for (const desc of messages) {
    if (!hasOption(desc, messageRules)) continue;
    for (const { id } of getOption(desc, messageRules).cel) {
      rules++;
      assertNamesField(desc, id);
    }
  }
  assert.ok(rules >= 12, `${rules} rules`);
});

test("every text of a request is bounded, every id to 255 bytes, every list to 1,000 items", () => {
  const unbound: string[] = [];
  let texts = 0;
  for (const field of fields) {
    const { type } = getOption(field, fieldRules);
    const list = type.case === "repeated" ? type.value : undefined;
    if (field.fieldKind === "list" && !(list && 0 < list.maxItems && list.maxItems <= 1_000n)) {
      unbound.push(`${field}`);
    }
    if (field.fieldKind === "map" || field.scalar === ScalarType.BYTES) unbound.push(`${field}`);
    if (field.scalar !== ScalarType.STRING) continue;
    texts++;
    const rules = (list?.items?.type ?? type) as { case?: string; value?: StringRules };
    const { maxBytes = 0n, maxLen = 0n, in: set = [] } = rules.value ?? {};
    const most = maxBytes || 4n * maxLen;
    if (set.length === 0 && (most === 0n || most > 16_384n)) unbound.push(`${field}`);
    if (/(^|_)(id|rid)$/.test(field.name) && maxBytes !== 255n) unbound.push(`${field}`);
  }
  assert.ok(texts >= 100, `${texts} texts`);
  assert.deepEqual(unbound, []);
});

test("no field has a plain pattern, which a refusal would show as a regular expression", () => {
  const plain = fields.filter((field) => {
    const { type } = getOption(field, fieldRules);
    const rules = type.case === "repeated" ? type.value.items?.type : type;
    return rules?.case === "string" && rules.value.pattern !== "";
  });
  assert.deepEqual(plain.map(String), []);
});

/** The fields that a message is refused for. */
function refused(schema: DescMessage, message: Record<string, unknown>): readonly FieldViolation[] {
  try {
    validate(schema, create(schema, message));
    return [];
  } catch (error) {
    assert.ok(error instanceof GatewayError && error.code === "INVALID_ARGUMENT");
    return error.details.fields ?? [];
  }
}

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
    assert.deepEqual(refused(schema, message), fields);
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

test("a decimal has up to 15 digits, 6 of them behind the point, and nothing else", () => {
  const amounts = (text: string) =>
    refused(CreateRecurrentPaymentRequestSchema, {
      recurrentId: "r",
      externalId: "e",
      amount: text,
    });
  const valid = ["10.10", "0.1", "99999999999.99", "-5", "0", "000000000000001"];
  for (const text of [...valid, "123456789012345", "999999999.999999", "0.000001"]) {
    assert.deepEqual(amounts(text), [], text);
  }
  const long = ["1234567890123456", "12345678901234.56", "1234567890.123456", "1.1234567"];
  for (const text of [...long, ".5", "5.", "+1", "1e3", "1,0", " 1", "1\n", "NaN", "١"]) {
    const paths = amounts(text).map(({ path }) => path);
    assert.deepEqual(paths, ["amount"], JSON.stringify(text));
  }
});

test("a list of more than 1,000 items is refused before its items are checked", () => {
  const refusal = (length: number) => {
    const items = Array.from({ length }, () => create(ProductSchema, { netAmount: "no number" }));
    return refused(CreatePaymentRequestSchema, { products: items });
  };
  assert.deepEqual(refusal(1_001), [{ path: "products", message: "must have at most 1000 items" }]);
  assert.ok(refusal(1_000).some(({ path }) => path === "products[999].net_amount"));
});

test("a duration out of bounds is refused with the field's name", () => {
  const about = { externalId: "order-1", kind: EventKind.PAYMENT };
  for (const [schema, field, values] of [
    [CreateWatchTokenRequestSchema, "ttl", [0, 999, 86_400_001].map(durationFromMs)],
    [WatchPaymentRequestSchema, "heartbeat", [-1, 0, 500, 3_600_001].map(durationFromMs)],
    [WatchPaymentRequestSchema, "heartbeatSeconds", [-1, 0, 3_601]],
  ] as const) {
    for (const value of values) {
      const [violation, ...more] = refused(schema, { ...about, [field]: value });
      const path = field.replace("S", "_s");
      assert.deepEqual([violation?.path, more], [path, []]);
    }
  }
});

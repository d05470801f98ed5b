import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { OperationSchema } from "../../src/gen/payments/v1/operation_pb.ts";
import { PaymentOperation, PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import { WalletItemSchema } from "../../src/gen/payments/v1/wallet_pb.ts";
import { endOf } from "../../src/model/payout-statuses.ts";
import { isSecret } from "../../src/secrets/secret-fields.ts";
import { decodePayout } from "../../src/wire/payout.ts";
import { decode, decodeList, WireError, type WireFault } from "../../src/wire/wire.ts";

const payment = PaymentSchema;
const operation = OperationSchema;
const request = CreatePaymentRequestSchema;
const fiscal = (code: string) => `{"details":{"fiscalization":{"status_code":${code}}}}`;
const code = "details.fiscalization.status_code";
const amountOf = (value: string) => `{"details":{"amount":${value}}}`;
const amount = "details.amount";
const fcId = (value: string) => `{"fc_id":${value}}`;
const bare = {
  $typeName: "payments.v1.Payment",
  operation: 0,
  details: { $typeName: "payments.v1.PaymentDetails", status: 0 },
  unrecognized: [],
};

/** Bodies that are understood, and what a property of their message holds. */
const understood: [what: string, desc: DescMessage, wire: string, path: string, holds: unknown][] =
  [
    ["an empty text as set", payment, '{"id":""}', "id", ""],
    ["a decimal number into text", payment, amountOf(" 10.10 "), amount, "10.10"],
    [
      "2^53 and more into text",
      payment,
      '{"id":12345678901234567890}',
      "id",
      "12345678901234567890",
    ],
    ["an exponent form written out", payment, amountOf("-1.250E+2"), amount, "-125.0"],
    ["the largest exponent", payment, amountOf("1e40"), amount, `1${"0".repeat(40)}`],
    [
      "a member whose name is written with escapes",
      payment,
      `{"details":{"fee":{"amount":1.0},"\\u0061mount":2}}`,
      amount,
      "2",
    ],
    [
      "the last of repeated members, with its digits",
      payment,
      `{"details":{"amount":1.0},"details":{"amount":2.0,"am\\u006funt":3.00}}`,
      amount,
      "3.00",
    ],
    [
      "digits next to strings that hold numbers, quotes and backslashes",
      payment,
      `{"x":"\\\\","y":["\\"1.0",-2.50,"\\\\\\""],"1.5":1.5,"id":7.70}`,
      "id",
      "7.70",
    ],
    ["a number field's digits", operation, amountOf("99999999999.990"), amount, "99999999999.990"],
    ["a number field as text", operation, amountOf('"0.10"'), amount, "0.10"],
    [
      "digits inside a list",
      request,
      '{"products":[{"quantity":1.0},{"quantity":2.50}]}',
      "products.1.quantity",
      "2.50",
    ],
    ["false as set", payment, '{"is_success":false}', "is_success", false],
    ["an integer as text", payment, fiscal('"1001"'), code, 1001],
    ["an integer with a point", payment, fiscal("1001.0"), code, 1001],
    ["minus zero as zero", payment, fiscal("-0"), code, 0],
    ["the largest int32", payment, fiscal("2147483647"), code, 2147483647],
    ["a small int64", PayoutSchema, fcId("42"), "fc_id", 42n],
    ["the largest int64", PayoutSchema, fcId("9223372036854775807"), "fc_id", 9223372036854775807n],
    [
      "the smallest as text",
      PayoutSchema,
      fcId('"-9223372036854775808"'),
      "fc_id",
      -9223372036854775808n,
    ],
    ["1e18", PayoutSchema, fcId("1e18"), "fc_id", 1000000000000000000n],
    ["null as absent", payment, '{"action":null}', "action", undefined],
    [
      "null in each kind of field as absent",
      payment,
      `{"id":null,"is_success":null,"operation":null,"details":{"created_at":null,"fiscalization":null}}`,
      "",
      bare,
    ],
    [
      "an empty text of an enum as absent",
      payment,
      `{"operation":"","details":{"status":" ","fiscalization":{"status":""}}}`,
      "operation",
      0,
    ],
    [
      "nulls beside the set member of a oneof",
      request,
      `{"payment_method":{"cc":null,"wallet":{"option_id":"o"},"apple_pay":null}}`,
      "payment_method.method",
      { case: "wallet", value: { $typeName: "payments.v1.WalletOption", optionId: "o" } },
    ],
    [
      "members that it does not know, whatever they are named",
      payment,
      `{"__proto__":{"id":"evil"},"constructor":{"prototype":{}},"toString":1,"actionRequired":true,"$typeName":"x","extra":[{}],"details":{"__proto__":{"amount":"1"}}}`,
      "",
      bare,
    ],
  ];

/** Bodies with a value of the wrong kind, which is reported and left unset. */
const misfits: [what: string, desc: DescMessage, wire: string, path: string, unset?: unknown][] = [
  ["an absurd exponent", payment, amountOf("1e400"), amount],
  ["an exponent above 40", payment, amountOf("1e41"), amount],
  ["an exponent below -40", payment, amountOf("1e-41"), amount],
  ["a boolean in text", payment, '{"id":true}', "id"],
  ["an object in text", payment, '{"id":{"a":1}}', "id"],
  ["a list in text", payment, '{"id":["a"]}', "id"],
  ['"true" in a boolean', payment, '{"is_success":"true"}', "is_success"],
  ["1 in a boolean", payment, '{"is_success":1}', "is_success"],
  ["2^31", payment, fiscal("2147483648"), code],
  ["a fraction", payment, fiscal("1.5"), code],
  ["empty text", payment, fiscal('""'), code],
  ["spaced digits", payment, fiscal('" 1"'), code],
  ["hex", payment, fiscal('"0x10"'), code],
  ["true in an integer", payment, fiscal("true"), code],
  ["2^63", PayoutSchema, fcId("9223372036854775808"), "fc_id"],
  ["an int64 fraction", PayoutSchema, fcId("1.5"), "fc_id"],
  ["1e400", PayoutSchema, fcId("1e400"), "fc_id"],
  ["a long run of digits", PayoutSchema, fcId(`"${"9".repeat(1e5)}"`), "fc_id"],
  ["words", PayoutSchema, fcId('"many"'), "fc_id"],
  ["a list in an integer", PayoutSchema, fcId("[1]"), "fc_id"],
  ["an unknown value of an enum", payment, '{"operation":"chargeback"}', "operation", 0],
  ['an enum\'s "unspecified"', payment, '{"operation":"unspecified"}', "operation", 0],
  ["an enum's number", payment, '{"operation":1}', "operation", 0],
  ["an enum's proto name", payment, '{"operation":"PAYMENT_OPERATION_PAYMENT"}', "operation", 0],
  [
    "an instant as a number",
    payment,
    '{"details":{"created_at":1795132800}}',
    "details.created_at",
  ],
  ["text in place of an object", payment, '{"details":"none"}', "details"],
  ["a list in place of an object", payment, '{"details":[{"amount":"1"}]}', "details"],
  ["an object in place of a list", request, '{"products":{"id":"1"}}', "products", []],
];

describe("decode reads", () => {
  const read = (desc: DescMessage, wire: string) => {
    const faults: string[] = [];
    const message = decode(desc, wire, { onFault: ({ path }) => faults.push(path) });
    assert.deepEqual(decode(desc, wire), message, "the same with nobody to tell");
    return { message, faults };
  };

  for (const [what, desc, wire, path, holds] of understood) {
    it(what, () => {
      const { message, faults } = read(desc, wire);
      assert.deepEqual(valueAt(message, path), holds);
      assert.deepEqual(faults, []);
    });
  }

  for (const [what, desc, wire, path, unset] of misfits) {
    it(`${what} as a fault`, () => {
      const { message, faults } = read(desc, wire);
      assert.deepEqual(valueAt(message, path), unset);
      assert.deepEqual(faults, [path]);
    });
  }

  it("the rest of a body with an empty instant", () => {
    const wire = '{"details":{"created_at":"","status":"success"}}';
    const { message, faults } = read(payment, wire);
    const details = { $typeName: "payments.v1.PaymentDetails", status: 3 };
    assert.deepEqual(valueAt(message, "details"), details);
    assert.deepEqual(faults, ["details.created_at"]);
  });

  it("what a list holds beside objects as faults", () => {
    const { message, faults } = read(request, '{"products":[null,{"id":"1"},7,{"id":false}]}');
    const $typeName = "payments.v1.Product";
    assert.deepEqual(valueAt(message, "products"), [{ $typeName, id: "1" }, { $typeName }]);
    assert.deepEqual(faults, ["products[]", "products[]", "products[].id"]);
  });

  it("a second member of a oneof as a fault", () => {
    const wire = '{"payment_method":{"google_pay":{"token":"t"},"wallet":{"option_id":"o"}}}';
    const { message, faults } = read(request, wire);
    assert.equal(valueAt(message, "payment_method.method.case"), "wallet");
    assert.deepEqual(faults, ["payment_method.google_pay"]);
  });

  for (const [value, kept] of [
    ["charged_back", "charged_back"],
    ["  Held ", "  Held "],
    [5, "5"],
    ["card 4111 1111 1111 1111", "card 4111 11** **** 1111"],
    ["4111111111111111".padStart(70, "x"), `${"x".repeat(54)}411111****`],
    ["x".repeat(1_000_000), "x".repeat(64)],
    ["half \ud800", "half \ufffd"],
    [`${"x".repeat(63)}😀`, `${"x".repeat(63)}\ufffd`],
  ] as const) {
    it(`a value outside its enum as unrecognized: ${JSON.stringify(value).slice(0, 80)}`, () => {
      const faults: WireFault[] = [];
      const wire = JSON.stringify({ details: { status: value }, operation: "refund" });
      const { details, operation, unrecognized } = decode(PaymentSchema, wire, {
        onFault: (fault) => faults.push(fault),
      });
      assert.deepEqual([details?.status, operation], [0, PaymentOperation.REFUND]);
      assert.deepEqual(
        unrecognized.map(({ field, value }) => [field, value]),
        [["details.status", kept]],
      );
      assert.deepEqual(faults, [{ path: "details.status", kind: "unrecognized", value: kept }]);
    });
  }

  it("half of a surrogate pair as U+FFFD, and reports where", () => {
    const faults: WireFault[] = [];
    const wire = '{"details": {"payload": "a\\ud800b"}}';
    const { details } = decode(PaymentSchema, wire, { onFault: (fault) => faults.push(fault) });
    assert.equal(details?.payload, "a\ufffdb");
    assert.deepEqual(faults, [{ path: "details.payload", kind: "malformed" }]);
  });

  it("each value outside its enum, and none of a field of another type, as unrecognized", () => {
    const { unrecognized } = decode(
      PaymentSchema,
      `{"operation":"chargeback","payment_method":{"type":"crypto"},"unrecognized":[{"field":"a"}],
        "details":{"status":{"a":1},"status_code":"new","fiscalization":{"status":""}}}`,
    );
    assert.deepEqual(Object.fromEntries(unrecognized.map(({ field, value }) => [field, value])), {
      operation: "chargeback",
      "payment_method.type": "crypto",
    });
    const { unrecognized: types } = decode(UpstreamErrorSchema, '{"type":"new_error"}');
    assert.deepEqual([types[0]?.field, types[0]?.value], ["type", "new_error"]);
    assert.deepEqual(decode(OperationSchema, '{"status":"held"}').unrecognized[0]?.value, "held");
  });

  it("the status of a payout that the gateway was not told of as unrecognized", () => {
    const payoutEnds = { success: new Set(["done"]), failure: new Set(["void"]) };
    for (const [status, isKnown] of [
      ...["", "init", "Pending", "DONE", " void\n"].map((status) => [status, true] as const),
      ...["success", "processing"].map((status) => [status, false] as const),
    ]) {
      const payout = decodePayout(JSON.stringify({ status }), { payoutEnds });
      assert.equal(payout.status, status);
      const words = payout.unrecognized.map(({ field, value }) => [field, value]);
      assert.deepEqual(words, isKnown ? [] : [["status", status]]);
      const end = { DONE: "success", " void\n": "failure" }[status as string];
      assert.equal(endOf(payout), end);
    }
  });

  it("no secret as unrecognized: no enum of a body is one", () => {
    for (const message of [PaymentSchema, PayoutSchema, OperationSchema, UpstreamErrorSchema]) {
      const schemas: DescMessage[] = [message];
      for (const schema of schemas) {
        for (const field of schema.fields) {
          assert.ok(!(field.enum && isSecret(field)), `${field}`);
          if (field.message && !schemas.includes(field.message)) schemas.push(field.message);
        }
      }
    }
  });

  it("a body with an unknown member nested as deep as the limit", () => {
    const deep = `${"[".repeat(63)}${" ".repeat(1_000)}${"]".repeat(63)}`;
    assert.equal(decode(PaymentSchema, `{"x":${deep},"id":1.0}`).id, "1.0");
  });

  it("nothing into Object.prototype", () => {
    decode(PaymentSchema, `{"__proto__":{"polluted":"yes"}}`);
    assert.equal(Reflect.get({}, "polluted"), undefined);
  });
});

describe("decode refuses", () => {
  const canary = "41111111";
  const refused: Array<[what: string, text: string, message: string]> = [
    ["an empty body", "", "the body is empty"],
    [
      "a body nested a hundred thousand deep",
      `{"x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
      "the body is nested more than 64 levels deep",
    ],
    [
      "a body of more values than any answer has",
      `{"x":[${"0,".repeat(60_000)}0]}`,
      "the body holds more than 50000 values",
    ],
    [
      "a number of thousands of digits",
      `{"id":${"1".repeat(5_000)}}`,
      "the body holds a number of more than 1000 digits",
    ],
    ["white space", " \n", "the body is empty"],
    ["HTML", `<p>${canary}</p>`, "the body is not JSON"],
    ["a truncated body", `{"id":"${canary}`, "the body is not JSON"],
    ["two bodies", `{"id":"${canary}"}{}`, "the body is not JSON"],
    ["bare digits in front of words", `${canary} x`, "the body is not JSON"],
    ["a list", `[{"id":"${canary}"}]`, "the body is JSON, but not an object"],
    ["text", `"${canary}"`, "the body is JSON, but not an object"],
    ["a number", canary, "the body is JSON, but not an object"],
    ["null", "null", "the body is JSON, but not an object"],
    ["true", "true", "the body is JSON, but not an object"],
  ];
  for (const [what, text, message] of refused) {
    it(`${what}, without quoting it`, () => {
      assert.throws(
        () => decode(PaymentSchema, text),
        (error) => {
          assert.ok(error instanceof WireError);
          assert.equal(error.message, message);
          assert.equal(error.cause, undefined);
          assert.ok(!String(error.stack).includes(canary));
          return true;
        },
      );
    });
  }
});

describe("decodeList reads", () => {
  const names = (text: string, faults: string[] = []) =>
    decodeList(WalletItemSchema, text, { onFault: ({ path }) => faults.push(path) }).map(
      ({ name }) => name,
    );

  it("one object as a list of one", () => {
    assert.deepEqual(names(`{"name":"a"}`), ["a"]);
  });

  it("a list of objects, in order, with the digits of numbers", () => {
    assert.deepEqual(names(`[{"name":"b"},{"name":1.0},{"name":2.00}]`), ["b", "1.0", "2.00"]);
  });

  it("an empty list and null as an empty list", () => {
    assert.deepEqual(names("[]"), []);
    assert.deepEqual(names("null"), []);
  });

  it("past elements that are not objects, reporting them", () => {
    const faults: string[] = [];
    const text = `[null,{"name":"a","card":{"mask":true}},7,[{"name":"b"}]]`;
    assert.deepEqual(names(text, faults), ["a"]);
    assert.deepEqual(faults, ["[]", "[].card.mask", "[]", "[]"]);
  });

  it("neither text, numbers nor HTML", () => {
    for (const text of [`"a"`, "1", "true", "<p>", ""]) {
      assert.throws(() => decodeList(WalletItemSchema, text), WireError, text);
    }
  });
});

describe("card numbers", () => {
  const number = "4111111111111111";

  /** The text fields of a message and of those within it, by their paths in JSON names. */
  function textsOf(desc: DescMessage, parent = ""): [path: string, field: DescField][] {
    return desc.fields.flatMap((field): [string, DescField][] => {
      const path = `${parent}${field.name}`;
      if (field.fieldKind === "message") return textsOf(field.message, `${path}.`);
      return field.scalar === ScalarType.STRING ? [[path, field]] : [];
    });
  }

  /** A body that holds the text in every text field. */
  function bodyOf(desc: DescMessage, text: string): Record<string, unknown> {
    const members = desc.fields.flatMap((field): [string, unknown][] => {
      if (field.fieldKind === "message") return [[field.name, bodyOf(field.message, text)]];
      return field.scalar === ScalarType.STRING ? [[field.name, text]] : [];
    });
    return Object.fromEntries(members);
  }

  const exact = new Map<DescMessage, string[]>([
    [
      PaymentSchema,
      [
        ...["external_id", "unified_external_id", "batch_external_id", "id", "project_id"],
        ...["action.value", "receipt_url", "customer.external_id"],
        ...[
          "details.amount",
          "details.fee.amount",
          "details.payload",
          "details.mid",
          "details.rrn",
        ],
        ...["details.payment_id", "details.transaction_id", "details.operation_id"],
        ...["details.billing_order_id", "details.gateway_order_id", "details.recurrent_id"],
        ...["details.subscription_id"],
        ...["details.fiscalization.fiscal_id", "details.fiscalization.fiscal_url"],
      ],
    ],
    [
      PayoutSchema,
      [
        ...["external_id", "transaction_id", "partner_key_id", "payer_account.entity_id"],
        ...["original_amount", "payer_amount", "payer_outer_fee", "recipient_amount"],
        ...["recipient_user.external_id", "recipient_user.rid"],
      ],
    ],
  ]);

  for (const [schema, kept] of exact) {
    for (const [text, masked] of [
      [number, "411111******1111"],
      [`Ada ${number}`, "Ada 411111******1111"],
      ["4111 1111-1111.1111", "4111 11**-****.1111"],
      [`+${number}`, "+411111******1111"],
    ] as const) {
      it(`${text} is masked in each text of a ${schema.name} but ids, amounts and addresses`, () => {
        const message = decode(schema, JSON.stringify(bodyOf(schema, text)));
        for (const [path, field] of textsOf(schema)) {
          const isKept = kept.includes(path) || isSecret(field);
          assert.equal(valueAt(message, path), isKept ? text : masked, path);
        }
        assert(textsOf(schema).length > kept.length + 10);
      });
    }
  }

  it("a number that is sent as one is masked too", () => {
    const { customer } = decode(PaymentSchema, `{"customer":{"last_name":${number}}}`);
    assert.equal(customer?.lastName, "411111******1111");
  });

  it("phone numbers, IP addresses and other digits stay as they are", () => {
    for (const [member, text] of [
      ["phone", "+8613800138002"],
      ["phone", "380441234560"],
      ["ip_address", "100.100.100.104"],
      ["browser_user_agent", "Mozilla/5.0 (X11) Chrome/120.0.6099.210 Safari/537.36"],
      ["last_name", "4111111111111112"],
    ] as const) {
      const body = JSON.stringify({ customer: { [member]: text } });
      assert.equal(valueAt(decode(PaymentSchema, body), `customer.${member}`), text);
    }
  });
});

/** The value at a path of JSON names. */
function valueAt(message: Message, path: string): unknown {
  return path
    .replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
    .split(".")
    .filter(Boolean)
    .reduce<unknown>((value, key) => (value as Record<string, unknown>)?.[key], message);
}

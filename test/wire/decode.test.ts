import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { DescMessage, Message } from "@bufbuild/protobuf";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { OperationSchema } from "../../src/gen/payments/v1/operation_pb.ts";
import { PaymentOperation, PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import { WalletItemSchema } from "../../src/gen/payments/v1/wallet_pb.ts";
import { isSecret } from "../../src/secrets/secret-fields.ts";
import { decodePayout } from "../../src/wire/payout.ts";
import { wireFields } from "../../src/wire/plan.ts";
import { decode, decodeList, WireError, type WireFault } from "../../src/wire/wire.ts";

interface Case {
  what: string;
  schema: DescMessage;
  wire: string;
  /** Property path and the value there. */
  at: string;
  holds: unknown;
  faults?: string[];
}

const payment = { schema: PaymentSchema };
const payout = { schema: PayoutSchema };
const request = { schema: CreatePaymentRequestSchema };
const fiscal = (code: string) => `{"details":{"fiscalization":{"status_code":${code}}}}`;
const statusCode = { ...payment, at: "details.fiscalization.statusCode" };
const badCode = { ...statusCode, holds: undefined };
const badCodeFault = { faults: ["details.fiscalization.status_code"] };
const fcId = { ...payout, at: "fcId" };
const badFcId = { ...fcId, holds: undefined, faults: ["fc_id"] };

const cases: Case[] = [
  // Text
  { what: "an empty text as set", ...payment, wire: `{"id":""}`, at: "id", holds: "" },
  {
    what: "a decimal number into text with its digits",
    ...payment,
    wire: `{"details":{"amount": 10.10 }}`,
    at: "details.amount",
    holds: "10.10",
  },
  {
    what: "a number beyond 2^53 into text",
    ...payment,
    wire: `{"external_id":12345678901234567890}`,
    at: "externalId",
    holds: "12345678901234567890",
  },
  {
    what: "an exponent form written out",
    ...payment,
    wire: `{"details":{"amount":-1.250E+2}}`,
    at: "details.amount",
    holds: "-125.0",
  },
  {
    what: "the last of repeated members, with its digits",
    ...payment,
    wire: `{"details":{"amount":1.0},"details":{"amount":2.0,"am\\u006funt":3.00}}`,
    at: "details.amount",
    holds: "3.00",
  },
  {
    what: "digits next to strings that hold numbers, quotes and backslashes",
    ...payment,
    wire: `{"x":"\\\\","y":["\\"1.0",-2.50,"\\\\\\""],"1.5":1.5,"id":7.70}`,
    at: "id",
    holds: "7.70",
  },
  {
    what: "an absurd exponent as a fault",
    ...payment,
    wire: `{"details":{"amount":1e400}}`,
    at: "details.amount",
    holds: undefined,
    faults: ["details.amount"],
  },
  {
    what: "a boolean in text as a fault",
    ...payment,
    wire: `{"id":true}`,
    at: "id",
    holds: undefined,
    faults: ["id"],
  },
  {
    what: "an object in text as a fault",
    ...payment,
    wire: `{"id":{"a":1}}`,
    at: "id",
    holds: undefined,
    faults: ["id"],
  },
  {
    what: "a list in text as a fault",
    ...payment,
    wire: `{"id":["a"]}`,
    at: "id",
    holds: undefined,
    faults: ["id"],
  },
  {
    what: "digits of a number field",
    schema: OperationSchema,
    wire: `{"details":{"amount":99999999999.990}}`,
    at: "details.amount",
    holds: "99999999999.990",
  },
  {
    what: "a number field given as text",
    schema: OperationSchema,
    wire: `{"details":{"amount":"0.10"}}`,
    at: "details.amount",
    holds: "0.10",
  },
  {
    what: "digits inside a list",
    ...request,
    wire: `{"products":[{"quantity":1.0},{"quantity":2.50}]}`,
    at: "products.1.quantity",
    holds: "2.50",
  },
  // Booleans
  { what: "true", ...payment, wire: `{"is_success":true}`, at: "isSuccess", holds: true },
  { what: "false as set", ...payment, wire: `{"is_success":false}`, at: "isSuccess", holds: false },
  {
    what: `"true" in a boolean as a fault`,
    ...payment,
    wire: `{"is_success":"true"}`,
    at: "isSuccess",
    holds: undefined,
    faults: ["is_success"],
  },
  {
    what: "1 in a boolean as a fault",
    ...payment,
    wire: `{"is_success":1}`,
    at: "isSuccess",
    holds: undefined,
    faults: ["is_success"],
  },
  // Integers
  { what: "an integer", ...statusCode, wire: fiscal("1001"), holds: 1001 },
  { what: "an integer as text", ...statusCode, wire: fiscal(`"1001"`), holds: 1001 },
  { what: "an integer with a point", ...statusCode, wire: fiscal("1001.0"), holds: 1001 },
  { what: "minus zero as zero", ...statusCode, wire: fiscal("-0"), holds: 0 },
  { what: "the largest int32", ...statusCode, wire: fiscal("2147483647"), holds: 2147483647 },
  { what: "2^31 as a fault", ...badCode, wire: fiscal("2147483648"), ...badCodeFault },
  { what: "a fraction as a fault", ...badCode, wire: fiscal("1.5"), ...badCodeFault },
  { what: "empty text as a fault", ...badCode, wire: fiscal(`""`), ...badCodeFault },
  { what: "spaced digits as a fault", ...badCode, wire: fiscal(`" 1"`), ...badCodeFault },
  { what: "hex as a fault", ...badCode, wire: fiscal(`"0x10"`), ...badCodeFault },
  { what: "true as a fault", ...badCode, wire: fiscal("true"), ...badCodeFault },
  { what: "a small int64", ...fcId, wire: `{"fc_id":42}`, holds: 42n },
  { what: "2^53+1", ...fcId, wire: `{"fc_id":9007199254740993}`, holds: 9007199254740993n },
  {
    what: "the largest int64",
    ...fcId,
    wire: `{"fc_id":9223372036854775807}`,
    holds: 9223372036854775807n,
  },
  {
    what: "the smallest int64 as text",
    ...fcId,
    wire: `{"fc_id":"-9223372036854775808"}`,
    holds: -9223372036854775808n,
  },
  { what: "1e18", ...fcId, wire: `{"fc_id":1e18}`, holds: 1000000000000000000n },
  { what: "2^63 as a fault", ...badFcId, wire: `{"fc_id":9223372036854775808}` },
  { what: "an int64 fraction as a fault", ...badFcId, wire: `{"fc_id":1.5}` },
  { what: "1e400 as a fault", ...badFcId, wire: `{"fc_id":1e400}` },
  { what: "a long run of digits as a fault", ...badFcId, wire: `{"fc_id":"${"9".repeat(1e5)}"}` },
  { what: "words as a fault", ...badFcId, wire: `{"fc_id":"many"}` },
  { what: "a list as a fault", ...badFcId, wire: `{"fc_id":[1]}` },
  // Enums
  {
    what: "an unknown value of an enum as a fault",
    ...payment,
    wire: `{"operation":"chargeback"}`,
    at: "operation",
    holds: 0,
    faults: ["operation"],
  },
  {
    what: `"unspecified" as unknown`,
    ...payment,
    wire: `{"operation":"unspecified"}`,
    at: "operation",
    holds: 0,
    faults: ["operation"],
  },
  {
    what: "an enum's number as a fault",
    ...payment,
    wire: `{"operation":1}`,
    at: "operation",
    holds: 0,
    faults: ["operation"],
  },
  {
    what: "the enum's proto name as unknown",
    ...payment,
    wire: `{"operation":"PAYMENT_OPERATION_PAYMENT"}`,
    at: "operation",
    holds: 0,
    faults: ["operation"],
  },
  // Instants
  {
    what: "an empty instant as a fault, the body's rest kept",
    ...payment,
    wire: `{"details":{"created_at":"","status":"success"}}`,
    at: "details",
    holds: { $typeName: "payments.v1.PaymentDetails", status: 3 },
    faults: ["details.created_at"],
  },
  {
    what: "an instant as a number as a fault",
    ...payment,
    wire: `{"details":{"created_at":1795132800}}`,
    at: "details.createdAt",
    holds: undefined,
    faults: ["details.created_at"],
  },
  // Objects and lists
  { what: "null as absent", ...payment, wire: `{"action":null}`, at: "action", holds: undefined },
  {
    what: "null in each kind of field as absent",
    ...payment,
    wire: `{"id":null,"is_success":null,"operation":null,"details":{"created_at":null,"fiscalization":null}}`,
    at: "",
    holds: {
      $typeName: "payments.v1.Payment",
      operation: 0,
      details: { $typeName: "payments.v1.PaymentDetails", status: 0 },
      unrecognized: [],
    },
  },
  {
    what: "text in place of an object as a fault",
    ...payment,
    wire: `{"details":"none"}`,
    at: "details",
    holds: undefined,
    faults: ["details"],
  },
  {
    what: "a list in place of an object as a fault",
    ...payment,
    wire: `{"details":[{"amount":"1"}]}`,
    at: "details",
    holds: undefined,
    faults: ["details"],
  },
  {
    what: "an object in place of a list as a fault",
    ...request,
    wire: `{"products":{"id":"1"}}`,
    at: "products",
    holds: [],
    faults: ["products"],
  },
  {
    what: "what a list holds beside objects as faults",
    ...request,
    wire: `{"products":[null,{"id":"1"},7,{"id":false}]}`,
    at: "products",
    holds: [{ $typeName: "payments.v1.Product", id: "1" }, { $typeName: "payments.v1.Product" }],
    faults: ["products[]", "products[]", "products[].id"],
  },
  {
    what: "nulls beside the set member of a oneof",
    ...request,
    wire: `{"payment_method":{"cc":null,"wallet":{"option_id":"o"},"apple_pay":null}}`,
    at: "paymentMethod.method",
    holds: { case: "wallet", value: { $typeName: "payments.v1.WalletOption", optionId: "o" } },
  },
  {
    what: "a second member of a oneof as a fault",
    ...request,
    wire: `{"payment_method":{"google_pay":{"token":"t"},"wallet":{"option_id":"o"}}}`,
    at: "paymentMethod.method.case",
    holds: "wallet",
    faults: ["payment_method.google_pay"],
  },
  {
    what: "members that it does not know, whatever they are named",
    ...payment,
    wire: `{"__proto__":{"id":"evil"},"constructor":{"prototype":{}},"toString":1,"actionRequired":true,"$typeName":"x","extra":[{}],"details":{"__proto__":{"amount":"1"}}}`,
    at: "",
    holds: {
      $typeName: "payments.v1.Payment",
      operation: 0,
      details: { $typeName: "payments.v1.PaymentDetails", status: 0 },
      unrecognized: [],
    },
  },
];

describe("decode reads", () => {
  for (const { what, schema, wire, at, holds, faults = [] } of cases) {
    it(what, () => {
      const told: string[] = [];
      const message = decode(schema, wire, { onFault: ({ path }) => told.push(path) });
      assert.deepEqual(valueAt(message, at), holds);
      assert.deepEqual(told, faults);
      assert.deepEqual(decode(schema, wire), message, "the same with nobody to tell");
    });
  }

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
    const ends = { success: new Set(["done"]), failure: new Set(["void"]) };
    for (const [status, isKnown] of [
      ...([
        ["", true],
        ["init", true],
        ["Pending", true],
        ["DONE", true],
        ["void", true],
      ] as const),
      ...([
        ["success", false],
        ["processing", false],
      ] as const),
    ] as const) {
      const payout = decodePayout(JSON.stringify({ status }), {}, ends);
      assert.equal(payout.status, status);
      const words = payout.unrecognized.map(({ field, value }) => [field, value]);
      assert.deepEqual(words, isKnown ? [] : [["status", status]]);
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

  it("bodies that JSON.parse quotes in its own message", () => {
    assert.throws(() => JSON.parse(`<p>${canary}</p>`), new RegExp(canary));
  });
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

function valueAt(message: Message, path: string): unknown {
  let value: unknown = message;
  for (const step of path === "" ? [] : path.split(".")) {
    value = (value as Record<string, unknown> | undefined)?.[step];
  }
  return value;
}

describe("card numbers", () => {
  const number = "4111111111111111";

  /** Paths of all text fields, in JSON names. */
  function textPaths(desc: DescMessage): string[] {
    return wireFields(desc).flatMap(({ member, type }) => {
      if (type.kind === "message") return textPaths(type.desc).map((path) => `${member}.${path}`);
      return type.kind === "string" || type.kind === "number" ? [member] : [];
    });
  }

  function isSecretPath(desc: DescMessage, path: string): boolean {
    const [first, ...others] = path.split(".");
    const field = desc.fields.find(({ name }) => name === first);
    if (!field) throw new Error(path);
    if (others.length === 0) return isSecret(field);
    return field.message !== undefined && isSecretPath(field.message, others.join("."));
  }

  /** A body that holds the text in every text field. */
  function bodyOf(desc: DescMessage, text: unknown): Record<string, unknown> {
    const members = wireFields(desc).flatMap(({ member, type }): [string, unknown][] => {
      if (type.kind === "message") return [[member, bodyOf(type.desc, text)]];
      return type.kind === "string" || type.kind === "number" ? [[member, text]] : [];
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
        for (const path of textPaths(schema)) {
          const held = pick(message, path);
          const isKept = kept.includes(path) || isSecretPath(schema, path);
          assert.equal(held, isKept ? text : masked, path);
        }
        assert(textPaths(schema).length > kept.length + 10);
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
      const property = member.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
      assert.equal(pick(decode(PaymentSchema, body), `customer.${property}`), text);
    }
  });
});

/** The value at a path of JSON names. */
function pick(message: Message, path: string): unknown {
  return path
    .replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
    .split(".")
    .reduce<unknown>((value, key) => (value as Record<string, unknown>)?.[key], message);
}

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { describe, it } from "node:test";
import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromJsonString,
  getOption,
  type Message,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ErrorTypeSchema, UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import { endpoint, wire } from "../../src/gen/payments/v1/options_pb.ts";
import {
  PaymentModeSchema,
  ProductSchema,
  RecipientPaymentMethodSchema,
  RecipientPaymentMethodTypeSchema,
} from "../../src/gen/payments/v1/payment_input_pb.ts";
import {
  FiscalizationSchema,
  FiscalizationStatusSchema,
  PaymentDetailsSchema,
  PaymentMethodSchema,
  PaymentMethodTypeSchema,
  PaymentOperation,
  PaymentOperationSchema,
  PaymentSchema,
  PaymentStatus,
  PaymentStatusSchema,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { decode, encode } from "../../src/wire/wire.ts";
import { BODIES, fixture } from "./fixtures.ts";

describe("the wire codec on bodies written from the spec's tables", () => {
  for (const [schema, ...names] of BODIES) {
    for (const name of names) {
      const wire = fixture(`${name}.json`);
      const message = fromJsonString(schema, fixture(`${name}.message.json`));

      it(`reads every member of ${name}`, () => {
        const faults: string[] = [];
        const read = decode(schema, wire, { onFault: ({ path }) => faults.push(path) });
        assert.deepEqual(read, message);
        assert.deepEqual(faults, []);
      });

      it(`writes every member of ${name}`, () => {
        assert.deepEqual(withDigits(encode(schema, message)), withDigits(wire));
      });
    }
  }

  it("has a fixture that sets each field of each message, except those outside the body", () => {
    const inBodies = new Set<string>();
    const outside = new Set<string>();
    const inFixtures = new Set<string>();
    for (const [schema, ...names] of BODIES) {
      for (const field of fieldsBelow(schema)) {
        if (getOption(field, wire).omit) outside.add(field.name);
        else inBodies.add(nameOf(field));
      }
      for (const name of names) {
        const message = fromJsonString(schema, fixture(`${name}.message.json`));
        for (const field of fieldsSet(reflect(schema, message))) inFixtures.add(field);
      }
    }
    assert.deepEqual([...inBodies.difference(inFixtures)], []);
    const known = ["customer", "http_status", "subscription_id", "unrecognized", "wait_until"];
    assert.deepEqual([...outside].sort(), known);
  });

  it("has a fixture for each request that has a body", () => {
    const requests = services
      .flatMap((service): readonly DescMethod[] => service.methods)
      .filter((method) => /^(POST|PATCH|DELETE) /.test(getOption(method, endpoint)))
      .map(({ input }) => input)
      .filter(({ fields }) => fields.some((field) => !getOption(field, wire).omit));
    const bodies = BODIES.map(([schema]) => schema.typeName);
    assert.deepEqual(
      requests.map(({ typeName }) => typeName).filter((name) => !bodies.includes(name)),
      [],
    );
  });

  it("has no fixture that no test reads", () => {
    const files = readdirSync(new URL("../fixtures/wire", import.meta.url)).sort();
    const named = BODIES.flatMap(([, ...names]) => names);
    assert.deepEqual(files, named.flatMap((n) => [`${n}.json`, `${n}.message.json`]).sort());
  });
});

describe("the closed value sets", () => {
  const sets: Array<[schema: DescEnum, body: DescMessage, member: string, texts: string]> = [
    [PaymentStatusSchema, PaymentDetailsSchema, "status", "init pending success failure"],
    [
      PaymentOperationSchema,
      PaymentSchema,
      "operation",
      "payment confirm refund cancel lookup recurrent",
    ],
    [
      PaymentMethodTypeSchema,
      PaymentMethodSchema,
      "type",
      "cc_token cc_number wallet google_pay apple_pay card",
    ],
    [FiscalizationStatusSchema, FiscalizationSchema, "status", "Pending Success Failed"],
    [PaymentModeSchema, CreatePaymentRequestSchema, "mode", "direct hosted express_checkout"],
    [
      RecipientPaymentMethodTypeSchema,
      RecipientPaymentMethodSchema,
      "type",
      "iban cc_token wallet cc_number",
    ],
    [
      ErrorTypeSchema,
      UpstreamErrorSchema,
      "type",
      "invalid_request_error payment_method_error payment_settings_error payment_error api_error customer_error",
    ],
  ];
  for (const [schema, within, member, spec] of sets) {
    it(`reads and writes the spec's texts of ${schema.name}`, () => {
      const texts = spec.split(" ");
      assert.equal(texts.length, schema.values.length - 1);
      for (const [index, text] of texts.entries()) {
        const wire = `{"${member}":"${text}"}`;
        const read = decode(within, wire) as Message & Record<string, unknown>;
        const number = schema.values[index + 1]!.number;
        assert.equal(read[member], number, text);
        assert.equal(encode(within, read), wire);
        for (const variant of [text.toUpperCase(), text.toLowerCase()]) {
          const again = decode(within, `{"${member}":"${variant}"}`) as typeof read;
          assert.equal(again[member], number, variant);
        }
      }
    });
  }
});

describe("a decoded message", () => {
  it("equals the message that create makes, absent fields and zeros included", () => {
    const text = `{"operation":"refund","details":{"status":"success","created_at":"2026-01-02"}}`;
    assert.deepEqual(
      decode(PaymentSchema, text),
      create(PaymentSchema, {
        operation: PaymentOperation.REFUND,
        details: {
          status: PaymentStatus.SUCCESS,
          createdAt: timestampFromDate(new Date("2026-01-02T00:00:00Z")),
        },
      }),
    );
    for (const [schema] of BODIES) assert.deepEqual(decode(schema, "{}"), create(schema));
  });

  it("shares nothing with the next decoded message", () => {
    const text = `{"amount":1}`;
    const first = decode(CreatePaymentRequestSchema, text);
    first.products.push(create(ProductSchema));
    assert.deepEqual(decode(CreatePaymentRequestSchema, text).products, []);
  });
});

function* fieldsBelow(schema: DescMessage): Iterable<DescField> {
  for (const field of schema.fields) {
    yield field;
    const { message } = field;
    if (message && isInBody(message) && !getOption(field, wire).omit) yield* fieldsBelow(message);
  }
}

function nameOf({ parent, name }: DescField): string {
  return `${parent.typeName}.${name}`;
}

/**
 * Whether the message's fields are members of the body: a CustomerIdentity goes into headers and
 * the query, a Timestamp is a text.
 */
function isInBody(schema: DescMessage): boolean {
  return schema.name !== "CustomerIdentity" && schema.name !== "Timestamp";
}

function* fieldsSet(message: ReflectMessage): Iterable<string> {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    yield nameOf(field);
    if (field.fieldKind === "message" && isInBody(field.message)) {
      yield* fieldsSet(message.get(field));
    }
    if (field.fieldKind === "list" && field.listKind === "message") {
      for (const item of message.get(field)) yield* fieldsSet(item as ReflectMessage);
    }
  }
}

/** The JSON's value, in which a number has the text that it was written with. */
function withDigits(json: string): unknown {
  const keepDigits = (_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" ? { digits: context?.source } : value;
  return JSON.parse(json, keepDigits as (key: string, value: unknown) => unknown);
}

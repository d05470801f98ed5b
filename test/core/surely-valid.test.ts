import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import {
  create,
  createRegistry,
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import { exactRegex, expressionCode, textExpressionCode } from "../../scripts/rules/code.ts";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { file_payments_v1_rules } from "../../src/gen/payments/v1/rules_pb.ts";
import { surelyValid } from "../../src/gen/rules.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { seeded } from "../random.ts";

const validator = createValidator({ registry: createRegistry(file_payments_v1_rules) });
const messages = new Set(services.flatMap(({ methods }) => methods.map(({ input }) => input)));
for (const { fields } of messages) {
  for (const { message } of fields) {
    if (message && !message.typeName.startsWith("google.")) messages.add(message);
  }
}

const likely = [
  ...["ord-1", "x", "10.10", "0", "-5", "UAH", "4111111111111111", "12345678", "123"],
  ...["jo@example.com", "https://shop.example.com/back?a=1", "http://127.0.0.1:80/", "127.0.0.1"],
  ...["6f1c2a52-7a55-4f0e-9b7e-0c6f4b1d9a01", "uk", "en", "light", "dark", "card", "cash"],
  "abc.def",
];
const odd = [
  ...["", " ", "\n", "\u0000", "10.10\n", "1e3", ".5", "1234567890.123456", "999999999.999999"],
  ...["a@b", "a@b..c", "@", "a b@c.d", "ü@example.com", "jo@exa_mple.com", "jo@-a.com", '"a"@b.c'],
  ...["https://", "ftp://a.b", "https://a.b/%zz", "https://a.b/%20", "http://[::1]/"],
  ...["HTTPS://A.B", "https://a.b:99999/", "https://ü.example", "https://a.b/ü"],
  ...["https://u:p@a.b/", "http://a?b#c#d"],
  ...["256.1.1.1", "01.2.3.4", "1.2.3", "1.2.3.4.", "::1", "6F1C2A527A554F0E9B7E0C6F4B1D9A01"],
  ...["6f1c2a52-7a55-4f0e-9b7e-0c6f4b1d9a0", "6F1C2A52-7A55-4F0E-9B7E-0C6F4B1D9A01", "zz", "١"],
  ...["\ud800", "💶", "💶".repeat(25), "é".repeat(127), "é".repeat(128)],
  ...[50, 51, 255, 256, 2_048, 4_097, 16_385].map((length) => "x".repeat(length)),
];

type Below = (below: number) => number;

function anyValue(field: DescField, below: Below, depth: number): unknown {
  const one = <T>(items: readonly T[]) => items[below(items.length)] as T;
  if (field.message) return messageOf(field.message, below, depth + 1);
  if (field.enum) return one([...field.enum.values.map(({ number }) => number), 99]);
  if (field.fieldKind === "map") return {};
  switch (field.scalar) {
    case ScalarType.STRING:
      return below(4) === 0 ? one(odd) : one(likely);
    case ScalarType.BOOL:
      return below(2) === 0;
    case ScalarType.INT64:
      return one([0n, 1n, -1n]);
    default:
      return one([0, 1, -1, 5, 12, 30, 60, 2_031, 86_400, 2 ** 31 - 1]);
  }
}

function setAnew(message: Message, field: DescField, below: Below, depth: number): void {
  const fields = message as Message & Record<string, unknown>;
  const isLeftOut = field.message ? below(2) === 0 || depth > 3 : below(3) === 0;
  if (field.fieldKind === "list") {
    const items = Array.from({ length: below(3) }, () => anyValue(field, below, depth));
    fields[field.localName] = isLeftOut ? [] : items;
  } else if (field.oneof) {
    const value = anyValue(field, below, depth);
    fields[field.oneof.localName] =
      below(5) === 0 ? { case: undefined } : { case: field.localName, value };
  } else if (!isLeftOut) {
    fields[field.localName] = anyValue(field, below, depth);
  } else {
    const zero = create(field.parent) as Message & Record<string, unknown>;
    fields[field.localName] = zero[field.localName];
  }
}

function messageOf(desc: DescMessage, below: Below, depth = 0): Message {
  const message = create(desc);
  for (const field of desc.fields) if (below(3) > 0) setAnew(message, field, below, depth);
  return message;
}

/** Sets a new value on the path of a violation; if that names no field, in a random field. */
function mend(message: Message, desc: DescMessage, path: Violation["field"], below: Below): void {
  const [step, ...rest] = path;
  const named = step?.kind === "field" ? step : undefined;
  const field = named ?? desc.fields[below(desc.fields.length)];
  if (!field) return;
  const fields = message as Message & Record<string, unknown>;
  const { localName, oneof } = field;
  const held = oneof ? (fields[oneof.localName] as { value?: unknown }).value : fields[localName];
  const [index] = rest;
  const inner = index?.kind === "list_sub" ? (held as unknown[])[index.index] : held;
  if (named?.message && inner && below(4) > 0) {
    mend(inner as Message, named.message, index?.kind === "list_sub" ? rest.slice(1) : rest, below);
  } else {
    setAnew(message, field, below, 1);
  }
}

const isSurelyValid = ({ typeName }: DescMessage, message: Message) =>
  (surelyValid[typeName] ?? assert.fail(`${typeName} has no check`))(message);

test("isSurelyValid accepts only valid messages, and at least half of the valid ones", () => {
  const random = seeded(15);
  const below = (limit: number) => Math.floor(random() * limit);
  for (const desc of messages) {
    let valid = 0;
    let sure = 0;
    for (let round = 0; round < 120 && valid < 60; round++) {
      const message = messageOf(desc, below);
      for (let step = 0; step < 40; step++) {
        const isSure = isSurelyValid(desc, message);
        const result = validator.validate(desc, message);
        assert.notEqual(result.kind, "error", `${desc.name}: ${result.error}`);
        if (isSure)
          assert.deepEqual(result.violations ?? [], [], JSON.stringify(message, withBigints));
        if (result.kind === "valid") {
          valid += 1;
          if (isSure) sure += 1;
          const field = desc.fields[below(desc.fields.length)];
          if (field) setAnew(message, field, below, 0);
        } else {
          for (const { field } of result.violations ?? []) mend(message, desc, field, below);
        }
      }
    }
    assert.ok(valid >= 20, `${desc.name}: ${valid} valid messages`);
    assert.ok(sure >= valid * 0.5, `${desc.name}: ${sure} of ${valid}`);
  }
});

const withBigints = (_: string, value: unknown) => (typeof value === "bigint" ? `${value}` : value);

test("isSurelyValid accepts a typical payment, but not with a malformed amount", () => {
  const request = create(CreatePaymentRequestSchema, {
    ...{ amount: "10.10", currency: "UAH", mode: 1, externalId: "ord-0000000001" },
    customer: { email: "jo@example.com", ipAddress: undefined },
    paymentMethod: {
      method: {
        case: "cc",
        value: { number: "4111111111111111", cvv: "123", expMonth: 12, expYear: 2031 },
      },
    },
    successUrl: "https://shop.example.com/thanks?order=1",
  } as never);
  assert.equal(validator.validate(CreatePaymentRequestSchema, request).kind, "valid");
  assert.ok(isSurelyValid(CreatePaymentRequestSchema, request));
  request.amount = "ten";
  assert.ok(!isSurelyValid(CreatePaymentRequestSchema, request));
});

test("of an expression or pattern that is not fully understood no check is made", () => {
  for (const expression of [
    "this.mode + 1 == 2",
    "this.nothing != 1",
    "has(this.customer) ? true : false",
    "this.mode != 1 ||",
    "this.mode == 1 1",
    "size(this.products) < 3",
    "this.products.all(p, has(p.name))",
    "this.currency == 'a\\n'",
  ]) {
    assert.throws(() => expressionCode(expression, CreatePaymentRequestSchema), expression);
  }
  for (const unsure of ["!this.isUri()", "!(rule && this.isUri())", "this.size() > 1"]) {
    assert.throws(() => textExpressionCode(unsure, true, "text"), unsure);
  }
  for (const pattern of ["\\pL", "a.b", "^(?s).*$", "\\bx", "[[:alpha:]]", "(?P<a>b)", "\\Qa\\E"]) {
    assert.throws(() => exactRegex(pattern), pattern);
  }
});

test("a pattern is read in a time that does not double with each of its groups", () => {
  const nested = (groups: number, end: string) =>
    `${"(?:".repeat(groups)}a${")".repeat(groups)}${end}`;
  const readWithin = (pattern: string) =>
    runInNewContext("exactRegex(pattern)", { exactRegex, pattern }, { timeout: 10_000 });
  assert.match("a", readWithin(nested(30, "$")));
  assert.throws(() => readWithin(nested(30, "\\pL")), /no check is made/);
  assert.throws(() => exactRegex("(?i)a"), /no check is made/);
});

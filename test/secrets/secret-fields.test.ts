import assert from "node:assert/strict";
import { test } from "node:test";
import {
  create,
  createRegistry,
  type DescField,
  type DescMessage,
  equals,
  isFieldSet,
  type Message,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { CardSchema } from "../../src/gen/payments/v1/payment_input_pb.ts";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { FindWalletItemsResponseSchema } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import { contractFiles } from "../../src/model/contract.ts";
import { isSecret, putSecrets, type Split, splitSecrets } from "../../src/secrets/secret-fields.ts";

test("a message with secrets in a list is refused, since they would not come back to their items", () => {
  const found = create(FindWalletItemsResponseSchema, { items: [{ card: { token: "tok-b" } }] });
  assert.throws(() => splitSecrets(FindWalletItemsResponseSchema, found), /list/);
});

test("a mask stands in place of each secret", () => {
  const payment = create(PaymentSchema, {
    externalId: "e",
    details: { recipientIban: "UA21" },
    paymentMethod: { ccToken: { token: "tok", mask: "41**11" } },
  });
  const { open, secrets } = splitSecrets(PaymentSchema, payment, "***");
  assert.equal(payment.paymentMethod?.ccToken?.token, "tok");
  assert.equal(open.externalId, "e");
  assert.equal(open.details?.recipientIban, "***");
  assert.deepEqual(
    { ...open.paymentMethod?.ccToken },
    { ...payment.paymentMethod?.ccToken, token: "***" },
  );
  assert.equal(secrets?.paymentMethod?.ccToken?.token, "tok");
  const card = splitSecrets(CardSchema, create(CardSchema, { cvv: "987", expMonth: 12 }), "***");
  assert.deepEqual([card.open.cvv, card.open.expMonth], ["***", 0]);
});

test("a message without secrets is returned as it is", () => {
  const payment = create(PaymentSchema, { externalId: "e", paymentMethod: { ccToken: {} } });
  const { open, secrets } = splitSecrets(PaymentSchema, payment);
  assert.equal(secrets, undefined);
  assert.equal(open, payment);
});

const messages = [...createRegistry(...contractFiles)].filter((type) => type.kind === "message");

/** Answers that are never stored: their secrets are in lists. */
const inLists: ReadonlySet<string> = new Set([
  "payments.v1.ListEventsResponse",
  "payments.v1.ListPaymentsResponse",
  "payments.v1.FindWalletItemsResponse",
]);

test("every field whose name sounds like a secret is marked as one", () => {
  const secretNames =
    /(^|_)(number|cvv|cvc|pan|token|cryptogram|password|api_key|secret|expiration_date|iban)$|^exp_/;
  const harmless = [
    "payments.v1.ListEventsRequest.page_token", // A position in a list.
    "payments.v1.ListEventsResponse.next_page_token",
    "payments.v1.ListPaymentsRequest.page_token",
    "payments.v1.ListPaymentsResponse.next_page_token",
    "payments.v1.ListPayoutsRequest.page_token",
    "payments.v1.ListPayoutsResponse.next_page_token",
    "payments.v1.Wire.number", // An option of fields, not data.
  ];
  const sounding = messages
    .flatMap(({ fields }): readonly DescField[] => fields)
    .filter(({ fieldKind, name }) => fieldKind === "scalar" && secretNames.test(name));
  const [marked, unmarked] = [sounding.filter(isSecret), sounding.filter((one) => !isSecret(one))];
  assert.deepEqual(
    unmarked.map(({ parent, name }) => `${parent.typeName}.${name}`).sort(),
    harmless,
  );
  assert.ok(marked.length >= 15, `${marked.length}`);
});

test("splitSecrets removes every marked field of every message, and nothing else", () => {
  let secrets = 0;
  for (const type of messages) {
    if (inLists.has(type.typeName)) continue;
    for (const choice of [0, 1, 2, 3, 4, 5, 6]) {
      const full = reflect(type);
      fill(full, choice, 0);
      const message: Message = full.message;
      const whole = structuredClone(message);
      const held = secretsIn(full);
      secrets += held;
      const parts: Split<DescMessage> = splitSecrets(type, message);
      const { open, secrets: alone } = parts;
      assert.deepEqual(message, whole, type.typeName);
      assert.equal(secretsIn(reflect(type, open)), 0, type.typeName);
      assert.equal(alone === undefined ? 0 : secretsIn(reflect(type, alone)), held);
      if (alone) putSecrets(type, open, alone);
      assert.ok(equals(type, open, whole), type.typeName);
      assert.deepEqual(toBinary(type, open), toBinary(type, whole));
    }
  }
  assert.ok(secrets > 100, `${secrets}`);
});

/** Sets every field; of each oneof only the one that `choice` selects. */
function fill(message: ReflectMessage, choice: number, depth: number): void {
  for (const field of message.fields) {
    if (field.oneof && field.oneof.fields[choice % field.oneof.fields.length] !== field) continue;
    if (field.fieldKind === "message" && depth < 6)
      message.set(field, filled(field, choice, depth));
    else if (field.fieldKind === "enum") message.set(field, field.enum.values[1]?.number);
    else if (field.fieldKind === "scalar") message.set(field, example(field.scalar));
    else if (field.fieldKind === "list" && field.listKind === "message" && depth < 6) {
      for (let n = 0; n < 3; n++) message.get(field).add(filled(field, choice + n, depth));
    }
  }
}

function filled(field: { message: DescMessage }, choice: number, depth: number): ReflectMessage {
  const below = reflect(field.message);
  fill(below, choice, depth + 1);
  return below;
}

function example(type: ScalarType): unknown {
  if (type === ScalarType.BOOL) return true;
  if (type === ScalarType.INT64) return 7n;
  return type === ScalarType.STRING ? "text" : 7;
}

function secretsIn(message: ReflectMessage): number {
  let count = 0;
  for (const field of message.fields as readonly DescField[]) {
    if (!isFieldSet(message.message, field)) continue;
    if (isSecret(field)) count += 1;
    else if (field.fieldKind === "message") count += secretsIn(message.get(field));
    else if (field.fieldKind === "list" && field.listKind === "message") {
      for (const item of message.get(field)) count += secretsIn(item as ReflectMessage);
    }
  }
  return count;
}

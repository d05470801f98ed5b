import assert from "node:assert/strict";
import { test } from "node:test";
import { type DescMessage, fromJson, toJson } from "@bufbuild/protobuf";
import { OperationSchema } from "../../src/gen/payments/v1/operation_pb.ts";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { PayoutSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import { WalletItemSchema } from "../../src/gen/payments/v1/wallet_pb.ts";
import { answeredPayment } from "../core/answers.ts";
import type { FakeMethods } from "../fake-core.ts";
import { BODIES, fixture } from "../wire/fixtures.ts";
import { serve } from "./serve.ts";

// biome-ignore lint/suspicious/noExplicitAny: the messages of the fixtures, in proto JSON
type Json = any;

/** Each fixture, without the fields that GraphQL does not have. */
const messageOf = (name: string): Json =>
  JSON.parse(fixture(`${name}.message.json`), (key, value) =>
    ["callbackUrl", "fullNumber"].includes(key) ? undefined : value,
  );

/** Proto JSON as GraphQL has it: enums without their prefix, members of a oneof in an object. */
function graphqlOf(desc: DescMessage, json: Json): Json {
  const result: Json = {};
  for (const field of desc.fields) {
    const { oneof, localName } = field;
    const given = json[field.jsonName];
    if (given === undefined) continue;
    const one = (value: Json): Json => {
      if (field.enum) return value.slice(field.enum.sharedPrefix?.length);
      return field.message && typeof value === "object" ? graphqlOf(field.message, value) : value;
    };
    const value = Array.isArray(given) ? given.map(one) : one(given);
    const isNested = oneof && desc.fields.some((other) => !other.oneof);
    Object.assign(
      result,
      isNested ? { [oneof.localName]: { [localName]: value } } : { [localName]: value },
    );
  }
  return result;
}

const selectionOf = (shown: Json): string =>
  Object.entries(shown)
    .map(([name, value]) =>
      typeof value === "object" ? `${name} { ${selectionOf(value)} }` : name,
    )
    .join(" ");

const sent = <D extends DescMessage>(desc: D, name: string) => fromJson(desc, messageOf(name));
const core: FakeMethods = {
  getPayment: async () => ({ payment: sent(PaymentSchema, "payment") }),
  getPayout: async () => ({ payout: sent(PayoutSchema, "payout") }),
  getOperation: async () => sent(OperationSchema, "operation"),
  findWalletItems: async () => [sent(WalletItemSchema, "wallet-item-find")],
  getConfirmationStatus: async () => sent(WalletItemSchema, "wallet-item-confirmation"),
};

for (const [name, desc, field] of [
  ["payment", PaymentSchema, 'payment(externalId: "order-12")'],
  ["payout", PayoutSchema, 'payout(externalId: "payout-1")'],
  ["operation", OperationSchema, 'operation(externalId: "e", operationId: "o")'],
  ["wallet-item-find", WalletItemSchema, "walletItems"],
  ["wallet-item-confirmation", WalletItemSchema, 'walletConfirmation(optionId: "o")'],
] as const) {
  test(`every field of the fixture ${name} is shown`, async (t) => {
    const shown = graphqlOf(desc, messageOf(name));
    const gateway = await serve(t, core);
    const { data, errors } = await gateway.run(`{ it: ${field} { ${selectionOf(shown)} } }`);
    assert.equal(errors, undefined);
    assert.deepEqual([data.it].flat(), [shown]);
  });
}

/** Fields of requests that are no part of their bodies. */
const besideBody: Record<string, Json> = {
  UpdateSubscriptionRequest: { subscriptionId: "s", customer: { externalId: "c" } },
  DeleteWalletItemRequest: { customer: { authToken: "jwt" } },
};

for (const [desc, ...names] of BODIES.filter(([{ name }]) => name.endsWith("Request"))) {
  const mutation = desc.name.replace(/^./, (first) => first.toLowerCase()).replace(/Request$/, "");
  for (const name of names) {
    test(`${mutation} carries every field of the fixture ${name} to the core`, async (t) => {
      const gateway = await serve(t, { [mutation]: async () => answeredPayment() });
      const json = { ...messageOf(name), ...besideBody[desc.name] };
      const { data, errors } = await gateway.run(
        `mutation ($input: ${desc.name.replace(/Request$/, "Input")}!) {
          ${mutation}(input: $input) { __typename }
        }`,
        { input: graphqlOf(desc, json) },
      );
      assert.equal(errors, undefined);
      assert.doesNotMatch(data[mutation].__typename, /Error$/);
      const [call] = gateway.seen();
      assert.equal(call?.method, mutation);
      assert.deepEqual(toJson(desc, call.request as never), json);
    });
  }
}

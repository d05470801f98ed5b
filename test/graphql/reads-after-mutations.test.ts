import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type GraphQLNamedType,
  type GraphQLUnionType,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isNonNullType,
  isObjectType,
} from "graphql";
import type { Core } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import {
  type Event,
  EventKind,
  EventSchema,
  EventSource,
} from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { PayoutSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import { schema } from "../../src/graphql/schema/schema.ts";
import { answeredPayment, answeredPayout } from "../core/answers.ts";
import type { FakeMethods } from "../fake-core.ts";
import { serve } from "./serve.ts";

const payment = create(PaymentSchema, { externalId: "e", details: { operationId: "op" } });
const payout = create(PayoutSchema, { externalId: "e", transactionId: "t" });
const at = timestampFromMs(1_795_255_200_000);

function historyOf(kind: EventKind) {
  const resource: Event["resource"] =
    kind === EventKind.PAYMENT
      ? { case: "payment", value: payment }
      : { case: "payout", value: payout };
  const { CALLBACK: source } = EventSource;
  const ids = { cursor: "c", externalId: "e" };
  const node = create(EventSchema, { kind, source, ...ids, receivedAt: at, resource });
  return { edges: [{ cursor: "p", node }], hasNextPage: false, hasPreviousPage: false };
}

const mutations = {
  createPayment: async () => answeredPayment(payment),
  createRecurrentPayment: async () => answeredPayment(payment),
  confirmPayment: async () => answeredPayment(payment),
  resendCallback: async () => ({}),
  requestPayout: async () => answeredPayout(payout),
  deleteWalletItem: async () => ({}),
  updateSubscription: async () => ({}),
  deactivateSubscription: async () => ({}),
  createWatchToken: async () => ({ expiresAt: at }),
} satisfies FakeMethods;

/** What the fields below a success type read. A new read fails every test until it is added. */
const reads = {
  getPayment: async () => ({ payment, operations: [{ operationId: "op" }] }),
  listEvents: async ({ kind }) => historyOf(kind),
  getOperation: async () => ({ id: "op" }),
} satisfies FakeMethods;

/** Every field below a type, at every depth, but no type within itself. */
function selectionOf(type: GraphQLNamedType, within: readonly GraphQLNamedType[] = []): string {
  assert.ok(isObjectType(type), `${type} is no object type: select its members`);
  const fields = Object.values(type.getFields()).map(({ name, args, type: returned }) => {
    assert.ok(!args.some(isRequired), `${type}.${name} needs an argument: give it one here`);
    const below = getNamedType(returned);
    if (!isObjectType(below)) return name;
    if ([type, ...within].includes(below)) return "";
    return `${name} { ${selectionOf(below, [type, ...within])} }`;
  });
  return fields.join(" ");
}

const isRequired = (arg: { type: unknown; defaultValue?: unknown; default?: unknown }) =>
  isNonNullType(arg.type) && arg.defaultValue === undefined && arg.default === undefined;

/** A value of an input type with its required fields alone; the fake core does not look at it. */
function inputOf(type: GraphQLNamedType): string {
  if (isEnumType(type)) return type.getValues()[0]?.name ?? "";
  if (!isInputObjectType(type)) return '"1"';
  const required = Object.values(type.getFields()).filter((field) => isNonNullType(field.type));
  const fields = required.map((field) => {
    const value = inputOf(getNamedType(field.type));
    return `${field.name}: ${/^\[/.test(String(field.type)) ? `[${value}]` : value}`;
  });
  return `{${fields.join(", ")}}`;
}

const documents = Object.values(schema.getMutationType()?.getFields() ?? {}).map((field) => {
  const success = (getNamedType(field.type) as GraphQLUnionType)
    .getTypes()
    .find(({ name }) => !name.endsWith("Error"));
  assert.ok(success);
  const input = inputOf(getNamedType(field.args[0]?.type) as GraphQLNamedType);
  const text = `mutation { ${field.name}(input: ${input}) {
    __typename ... on ${success.name} { ${selectionOf(success)} }
  } }`;
  return { name: field.name, success: success.name, text };
});

const failures = {
  "a missing scope": new GatewayError("PERMISSION_DENIED", "needs the scope payments:read"),
  "a store that is away": new GatewayError("UNAVAILABLE", "the store is out of reach"),
  "a mistake of ours": new TypeError("undefined is not a function"),
};

/** All that the tests below read. */
const everyRead = new Set<string>();

for (const { name, success, text } of documents) {
  test(`whatever is read behind the answer, ${name} answers with its ${success}`, async (t) => {
    const whole = await serve(t, { ...mutations, ...reads });
    const { data, errors } = await whole.run(text);
    assert.equal(errors, undefined, JSON.stringify(errors));
    assert.equal(data[name].__typename, success);
    const read = new Set(whole.seen().map(({ method }) => method));
    read.delete(name as keyof Core);
    for (const one of read) everyRead.add(one);

    for (const [why, error] of Object.entries(failures)) {
      for (const failing of [...[...read].map((one) => [one]), [...read]]) {
        if (failing.length === 0) continue;
        const fail = Object.fromEntries(failing.map((one) => [one, () => Promise.reject(error)]));
        const broken = await serve(t, { ...mutations, ...reads, ...fail });
        const answer = await broken.run(text);
        const about = `${failing.join()}: ${why}: ${JSON.stringify(answer.errors)}`;
        assert.equal(answer.data?.[name]?.__typename, success, about);
        assert.ok(answer.errors.length > 0, about);
        for (const { path } of answer.errors) assert.ok(path.length > 1, about);
      }
    }
  });
}

test("a payment, a payout and their links are read behind the answer", () => {
  assert.deepEqual([...everyRead].sort(), Object.keys(reads).sort(), "the control");
});

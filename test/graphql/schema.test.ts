import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLUnionType,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
  printSchema,
} from "graphql";
import {
  CreateWatchTokenRequestSchema,
  StreamEventsRequestSchema,
} from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { WatchPaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import { WatchPayoutRequestSchema } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { schema } from "../../src/graphql/schema/schema.ts";
import { valuesOf } from "../values-of.ts";

test("every type, field, argument and enum value is described", () => {
  const bare: string[] = [];
  const need = (what: string, described: { description?: string | null | undefined }) => {
    if (!described.description) bare.push(what);
  };
  for (const type of ownTypes()) {
    need(type.name, type);
    if (isEnumType(type)) {
      for (const value of type.getValues()) need(`${type.name}.${value.name}`, value);
    }
    if (isObjectType(type) || isInterfaceType(type) || isInputObjectType(type)) {
      for (const field of Object.values(type.getFields())) {
        need(`${type.name}.${field.name}`, field);
        for (const arg of "args" in field ? field.args : []) {
          if (arg.name !== "input") need(`${type.name}.${field.name}(${arg.name})`, arg);
        }
      }
    }
  }
  assert.deepEqual(bare, []);
});

test("no description uses names of the RPC API", () => {
  const descriptions = printSchema(schema).match(/"""[\s\S]*?"""/g) ?? [];
  const foreign = descriptions.filter((text) =>
    /\b(Get|Find|Stream)[A-Z]|WatchP|after_cursor|_UNSPECIFIED|_id\b/.test(text),
  );
  assert.deepEqual(foreign, []);
});

test("no caller of GraphQL sees the full number of a wallet's card", () => {
  const { card } = (schema.getType("WalletItem") as GraphQLObjectType).getFields();
  const shown = Object.keys((getNamedType(card?.type) as GraphQLObjectType).getFields());
  assert.deepEqual([shown.includes("mask"), shown.includes("fullNumber")], [true, false]);
});

test("an event shows a payment and a payout as it told them, without id and without what is of today", () => {
  const fieldsOf = (name: string) =>
    Object.keys((schema.getType(name) as GraphQLObjectType).getFields());
  for (const [now, desc] of [
    ["Payment", PaymentSchema],
    ["Payout", PayoutSchema],
  ] as const) {
    const told = desc.fields.map(({ localName }) => localName).filter((name) => name !== "id");
    assert.deepEqual(fieldsOf(`${now}Snapshot`).sort(), told.sort());
  }
});

test("nothing in an event is an entity to a normalized cache, which an old event could overwrite", () => {
  const below = new Set<GraphQLObjectType>();
  const collect = (type: GraphQLNamedType | undefined) => {
    if (!isObjectType(type) || below.has(type)) return;
    below.add(type);
    for (const field of Object.values(type.getFields())) collect(getNamedType(field.type));
  };
  for (const name of ["PaymentEvent", "PayoutEvent"]) collect(schema.getType(name));
  const names = [...below].map(({ name }) => name);
  assert.ok(names.includes("PaymentDetails"), "the control");
  // Caches store an object with an `id` once for all of its type's places.
  const entities = [...below].filter((type) => ["id", "_id"].some((id) => id in type.getFields()));
  assert.deepEqual(entities, []);
  for (const name of ["Payment", "Payout", "Operation"]) assert.ok(!names.includes(name), name);
});

test("externalId is an ID wherever it goes in, so that one variable serves all", () => {
  const types: string[] = [];
  for (const type of ownTypes()) {
    if (isInputObjectType(type)) {
      const { externalId } = type.getFields();
      if (externalId) types.push(getNamedType(externalId.type).name);
    } else if (isObjectType(type)) {
      for (const { args } of Object.values(type.getFields())) {
        const given = args.filter(({ name }) => name === "externalId");
        types.push(...given.map((arg) => getNamedType(arg.type).name));
      }
    }
  }
  assert.ok(types.length > 12, "the control");
  assert.deepEqual([...new Set(types)], ["ID"]);
});

test("a field with a newer form is deprecated, and its reason names that", () => {
  const { events, eventsConnection } = (schema.getType("Payment") as GraphQLObjectType).getFields();
  assert.match(events?.deprecationReason ?? "", /eventsConnection/);
  assert.equal(eventsConnection?.deprecationReason ?? undefined, undefined);
  for (const desc of [
    CreateWatchTokenRequestSchema,
    StreamEventsRequestSchema,
    WatchPaymentRequestSchema,
    WatchPayoutRequestSchema,
  ]) {
    const names = new Set(desc.fields.map(({ name }) => name));
    const older = desc.fields.filter(
      ({ name }) => names.has(name.replace(/_seconds$/, "")) && name.endsWith("_seconds"),
    );
    assert.deepEqual(valuesOf(older, "deprecated"), [true], desc.name);
  }
});

function ownTypes(): GraphQLNamedType[] {
  return Object.values(schema.getTypeMap()).filter(
    (type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type),
  );
}

test("result types of a mutation agree on the type of a field, so that one query can select it in each", () => {
  const clashes: string[] = [];
  for (const field of Object.values(schema.getMutationType()?.getFields() ?? {})) {
    const types = new Map<string, string>();
    for (const member of (getNamedType(field.type) as GraphQLUnionType).getTypes()) {
      for (const { name, type } of Object.values(member.getFields())) {
        const known = types.get(name) ?? String(type);
        if (known !== String(type)) clashes.push(`${field.name}: ${name}`);
        types.set(name, known);
      }
    }
  }
  // `type` of a wallet item and of an error differ: a query must give one of them an alias.
  assert.deepEqual(clashes, ["deleteWalletItem: type"]);
});

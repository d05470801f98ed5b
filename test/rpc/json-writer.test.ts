import assert from "node:assert/strict";
import { test } from "node:test";
import {
  create,
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
  toJsonString,
} from "@bufbuild/protobuf";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../../src/gen/grpc/reflection/v1/reflection_pb.ts";
import { jsonWriterOf } from "../../src/rpc/json-writer.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { randomOf } from "../random.ts";

/** These message types and all that they hold. */
function withinAll(roots: readonly DescMessage[]): Set<DescMessage> {
  const found = new Set<DescMessage>();
  const visit = (desc: DescMessage) => {
    if (found.has(desc) || desc.typeName.startsWith("google.")) return;
    found.add(desc);
    for (const { message } of desc.fields) if (message) visit(message);
  };
  roots.forEach(visit);
  return found;
}

/** The types of the contract, and those with bytes and a map, which are left to protobuf-es. */
const allTypes = withinAll(
  [...services, Health, ServerReflection].flatMap(({ methods }) =>
    methods.flatMap(({ input, output }) => [input, output]),
  ),
);

const texts = [
  "",
  "a",
  'q"\\',
  "\u0000\n\u001f",
  "\u007f",
  "über 💶",
  "\ud800",
  "\udc00x",
  "\u2028",
];
const doubles = [0, -0, 1.5, 1e21, -1e-7, Number.NaN, Infinity, -Infinity, 150.75];
const integers = [0, 1, -1, 2 ** 31 - 1, -(2 ** 31)];
const bigs = [0n, 1n, -1n, 2n ** 63n - 1n, -(2n ** 63n)];
const seconds = [0n, 1n, 951_782_400n, 1_732_320_000n, 253_402_300_799n, -1n, -62_135_596_800n];
const nanos = [0, 1, 1_000, 120_000_000, 999_999_999];

/** A random message: each field has a random value of its type, or is unset. */
function messageOf(desc: DescMessage, below: (n: number) => number, depth = 0): Message {
  const one = <T>(items: readonly T[]) => items[below(items.length)] as T;
  if (desc.typeName === "google.protobuf.Timestamp") {
    return create(desc, { seconds: one(seconds), nanos: one(nanos) } as never);
  }
  const scalar = (type: ScalarType): unknown => {
    switch (type) {
      case ScalarType.STRING:
        return one(texts);
      case ScalarType.BOOL:
        return below(2) === 0;
      case ScalarType.BYTES:
        return new Uint8Array(below(4)).fill(below(256));
      case ScalarType.DOUBLE:
      case ScalarType.FLOAT:
        return one(doubles);
      case ScalarType.INT64:
      case ScalarType.SINT64:
      case ScalarType.SFIXED64:
        return one(bigs);
      case ScalarType.UINT64:
      case ScalarType.FIXED64:
        return one([0n, 1n, 2n ** 64n - 1n]);
      case ScalarType.UINT32:
      case ScalarType.FIXED32:
        return one([0, 1, 2 ** 32 - 1]);
      default:
        return one(integers);
    }
  };
  const value = (field: DescField): unknown => {
    if (field.message) return messageOf(field.message, below, depth + 1);
    // An open enum may hold a number that it does not name.
    if (field.enum) return one([...field.enum.values.map(({ number }) => number), 999]);
    return scalar(field.scalar as ScalarType);
  };
  const init: Record<string, unknown> = {};
  for (const field of desc.fields) {
    if (below(3) === 0 || (field.message && depth > 2)) continue;
    if (field.fieldKind === "list") {
      init[field.localName] = Array.from({ length: below(3) }, () => value(field));
    } else if (field.fieldKind === "map") {
      init[field.localName] = { a: value(field), __proto__x: value(field) };
    } else if (field.oneof) {
      init[field.oneof.localName] = { case: field.localName, value: value(field) };
    } else {
      init[field.localName] = value(field);
    }
  }
  return create(desc, init as never);
}

function outcome(write: () => string): string {
  try {
    return write();
  } catch {
    return refused;
  }
}

const refused = "refused";

test("writes every message as protobuf-es does, byte for byte", () => {
  const below = randomOf(15);
  for (const desc of allTypes) {
    const write = jsonWriterOf(desc);
    const seen = new Set<string>();
    for (let round = 0; round < 100; round++) {
      const message = messageOf(desc, below);
      const text = outcome(() => write(message));
      const expected = outcome(() => toJsonString(desc, message));
      assert.equal(text, expected, desc.typeName);
      seen.add(text);
    }
    if (desc.fields.length > 3) assert.ok(seen.size > 50, `${desc.typeName}: ${seen.size}`);
  }
});

test("what protobuf-es refuses is not written", () => {
  const wrong = [1, "x", true, 1n, {}, null, Symbol.iterator, [], new Date(0)];
  let refusals = 0;
  for (const desc of allTypes) {
    for (const field of desc.fields) {
      for (const value of wrong) {
        const message = create(desc) as Message & Record<string, unknown>;
        if (field.oneof) message[field.oneof.localName] = { case: field.localName, value };
        else message[field.localName] = value;
        const expected = outcome(() => toJsonString(desc, message));
        const told = outcome(() => jsonWriterOf(desc)(message));
        // It also refuses some that protobuf-es takes, such as a text for a list.
        if (told !== refused) assert.equal(told, expected, `${field} ${String(value)}`);
        if (expected === refused) refusals += 1;
      }
    }
  }
  assert.ok(refusals > 1_000, `${refusals}`);
});

test("the writer compiles every answer of the contract: protobuf-es writes only other kinds of fields", () => {
  const compiled = [ScalarType.STRING, ScalarType.BOOL, ScalarType.INT32, ScalarType.INT64];
  const answers = withinAll(services.flatMap(({ methods }) => methods.map(({ output }) => output)));
  for (const field of [...answers].flatMap(({ fields }) => fields)) {
    assert.notEqual(field.fieldKind, "map", `${field}`);
    if (field.scalar !== undefined) assert.ok(compiled.includes(field.scalar), `${field}`);
  }
  assert.ok(answers.size > 30, `${answers.size}`);
});

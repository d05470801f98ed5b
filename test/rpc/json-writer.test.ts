import assert from "node:assert/strict";
import { test } from "node:test";
import {
  create,
  type DescMessage,
  type Message,
  ScalarType,
  toJsonString,
} from "@bufbuild/protobuf";
import { jsonWriterOf } from "../../src/rpc/json-writer.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { randomOf } from "../random.ts";
import { contract, everyKind, messageOf } from "./messages.ts";

function outcome(write: () => string): string {
  try {
    return write();
  } catch (error) {
    return String(error);
  }
}

for (const [name, descs, rounds] of [
  ["the contract", contract, 100],
  ["a message of every kind of field", [everyKind()], 200],
] as const) {
  test(`writes ${name} as protobuf-es does, byte for byte`, () => {
    const below = randomOf(15);
    const seen = new Set<string>();
    for (const desc of descs) {
      const write = jsonWriterOf(desc);
      for (let round = 0; round < rounds; round++) {
        const message = messageOf(desc, below);
        const text = outcome(() => write(message));
        assert.equal(
          text,
          outcome(() => toJsonString(desc, message)),
          desc.typeName,
        );
        seen.add(text);
      }
    }
    assert.ok(seen.size > 150, `${seen.size}`);
  });
}

test("an invalid value of a field is refused with the message of protobuf-es", () => {
  const desc = everyKind();
  const wrong = [1, "x", true, 1n, {}, null, Symbol.iterator, [], new Date(0)];
  let refused = 0;
  for (const field of desc.fields) {
    for (const value of wrong) {
      const message = create(desc) as Message & Record<string, unknown>;
      if (field.oneof) message[field.oneof.localName] = { case: field.localName, value };
      else message[field.localName] = value;
      const expected = outcome(() => toJsonString(desc, message));
      assert.equal(
        outcome(() => jsonWriterOf(desc)(message)),
        expected,
        `${field} ${String(value)}`,
      );
      if (expected.includes("Error")) refused += 1;
    }
  }
  assert.ok(refused > 100, `${refused}`);
});

test("the writer compiles every answer of the contract: protobuf-es writes only other kinds of fields", () => {
  const compiled = [ScalarType.STRING, ScalarType.BOOL, ScalarType.INT32, ScalarType.INT64];
  const seen = new Set<DescMessage>();
  const visit = (desc: DescMessage) => {
    if (seen.has(desc) || desc.typeName.startsWith("google.")) return;
    seen.add(desc);
    for (const field of desc.fields) {
      assert.notEqual(field.fieldKind, "map", `${field}`);
      if (field.message) visit(field.message);
      if (field.scalar !== undefined) assert.ok(compiled.includes(field.scalar), `${field}`);
    }
  };
  for (const { methods } of services) for (const { output } of methods) visit(output);
  assert.ok(seen.size > 30, `${seen.size}`);
});

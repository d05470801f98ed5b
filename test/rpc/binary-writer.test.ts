import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { GetPaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { binaryWriterOf } from "../../src/rpc/binary-writer.ts";
import { contract, everyKind, messageOf, randomOf } from "./messages.ts";

function outcome(write: () => Uint8Array): string {
  try {
    return Buffer.from(write()).toString("hex");
  } catch (error) {
    return String(error);
  }
}

function assertSame(desc: DescMessage, message: Message, about?: string): string {
  const written = outcome(() => binaryWriterOf(desc)(message));
  assert.equal(
    written,
    outcome(() => toBinary(desc, message)),
    about ?? desc.typeName,
  );
  return written;
}

/** The kinds of field that the contract has. The compiled writer writes only these itself. */
const compiled = /^(?:many_|one_|opt_)?(?:string|bool|int32|int64|uint32|uint64|enum|message)$/;

for (const [name, descs, rounds, isCompiled] of [
  ["the contract", contract, 100, true],
  ["a message of every kind of field", [everyKind()], 300, false],
  ["a message of every kind of field that the contract has", [everyKind(compiled)], 600, true],
] as const) {
  test(`writes ${name} as protobuf-es does, byte for byte`, () => {
    const below = randomOf(15);
    const seen = new Set<string>();
    let [here, all] = [0, 0];
    for (const desc of descs) {
      for (let round = 0; round < rounds; round++) {
        const message = messageOf(desc, below);
        const written = assertSame(desc, message);
        seen.add(written);
        // Only the compiled writer returns a Buffer; protobuf-es returns a plain Uint8Array.
        if (Buffer.isBuffer(binaryWriterOf(desc)(message))) here += 1;
        all += 1;
        // The bytes decode to a message that is written as the same bytes.
        const bytes = Buffer.from(written, "hex");
        assert.equal(assertSame(desc, fromBinary(desc, bytes)), written);
      }
    }
    assert.ok(seen.size > 150, `${seen.size}`);
    assert.equal(here, isCompiled ? all : here, "written by the compiled writer");
  });
}

test("lengths of more than one byte, and texts longer than the writer's memory, are written correctly", () => {
  for (const length of [0, 1, 126, 127, 128, 129, 16_383, 16_384, 16_385, 70_000]) {
    for (const letter of ["a", "ß", "€", "\ud800"]) {
      const statusDescription = letter.repeat(length);
      const message = create(PaymentSchema, { details: { statusDescription } });
      const written = assertSame(PaymentSchema, message, `${length} of ${letter}`);
      assert.ok(written.length >= 2 * length);
    }
  }
});

test("a message after one that was left to protobuf-es is written from the start", () => {
  const write = binaryWriterOf(GetPaymentRequestSchema);
  const wrong = create(GetPaymentRequestSchema, { externalId: "o-1" });
  Object.assign(wrong, { $unknown: [{ no: 99, wireType: 0, data: new Uint8Array([1]) }] });
  const good = create(GetPaymentRequestSchema, { externalId: "o-2" });
  const first = write(good);
  assertSame(GetPaymentRequestSchema, wrong, "unknown fields are kept");
  assert.deepEqual(write(good), first);
  assert.deepEqual([...first], [...toBinary(GetPaymentRequestSchema, good)]);
});

test("an invalid value of a field is refused with the message of protobuf-es", () => {
  let refused = 0;
  for (const desc of [everyKind(), everyKind(compiled)]) {
    const wrong = [
      1,
      -1,
      1.5,
      2 ** 32,
      "x",
      true,
      1n,
      -1n,
      2n ** 64n,
      {},
      null,
      [],
      [1],
      new Date(0),
    ];
    for (const field of desc.fields) {
      for (const value of wrong) {
        const message = create(desc) as Message & Record<string, unknown>;
        if (field.oneof) message[field.oneof.localName] = { case: field.localName, value };
        else message[field.localName] = value;
        const written = assertSame(desc, message, `${field} ${String(value)}`);
        if (written.includes("Error")) refused += 1;
      }
    }
  }
  assert.ok(refused > 100, `${refused}`);
});

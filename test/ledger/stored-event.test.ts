import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { EventKind, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { readEvent, writeEvent } from "../../src/ledger/stored-event.ts";
import { deriveKeyring } from "../../src/secrets/keyring.ts";
import { Secret } from "../../src/secrets/secret.ts";

const [{ events: seal }, { events: another }] = await Promise.all([
  deriveKeyring("shop", [new Secret("password")]),
  deriveKeyring("shop", [new Secret("another")]),
]);

const eventOf = (externalId: string, token?: string) =>
  create(EventSchema, {
    kind: EventKind.PAYMENT,
    externalId,
    resource: {
      case: "payment",
      value: {
        externalId,
        paymentMethod: { ccToken: { mask: "41**11", ...(token && { token }) } },
      },
    },
  });

test("an event is stored with its secrets encrypted, and read back unchanged", () => {
  const event = eventOf("order-1", "card-token");
  const stored = writeEvent(seal, event);
  assert.deepEqual(event, eventOf("order-1", "card-token"), "the one given is whole");
  assert.ok(!stored.includes("card-token"));
  assert.ok(stored.includes("41**11"));
  assert.deepEqual(readEvent(seal, stored), { event, locked: false });
});

test("a stored event has memory of its own, so that another thread gets no more than it", () => {
  const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  for (const token of ["card-token", undefined]) {
    const stored = writeEvent(seal, eventOf("order-1", token), trace);
    assert.equal(stored.buffer.byteLength, stored.byteLength);
  }
  const sealed = seal.close(Buffer.from("secret"), "context");
  assert.equal(sealed.buffer.byteLength, sealed.byteLength);
});

test("an event without secrets is stored as its protobuf bytes, and read without the key", () => {
  for (const event of [eventOf("order-1"), create(EventSchema)]) {
    const stored = writeEvent(seal, event);
    assert.deepEqual(new Uint8Array(stored), toBinary(EventSchema, event));
    assert.deepEqual(readEvent(another, stored), { event, locked: false });
  }
});

test("an event that is read with another password lacks its secrets and is locked", () => {
  const stored = writeEvent(seal, eventOf("order-1", "card-token"));
  assert.deepEqual(readEvent(another, stored), { event: eventOf("order-1"), locked: true });
});

test("secrets that were moved to another event cannot be decrypted", () => {
  const [mine, yours] = ["order-1", "order-2"].map((id) =>
    writeEvent(seal, eventOf(id, `t-${id}`)),
  );
  assert.ok(mine && yours);
  const head = mine.length - toBinary(EventSchema, eventOf("order-1")).length;
  const moved = Buffer.concat([mine.subarray(0, head), yours.subarray(head)]);
  assert.deepEqual(readEvent(seal, moved), { event: eventOf("order-2"), locked: true });
});

test("a reader without support for encryption reads the event without its secrets", () => {
  const { $unknown, ...event } = fromBinary(
    EventSchema,
    writeEvent(seal, eventOf("order-1", "card-token")),
  );
  assert.equal($unknown?.length, 1);
  assert.deepEqual(event, { ...eventOf("order-1") });
});

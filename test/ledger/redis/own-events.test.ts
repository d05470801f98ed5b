import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it } from "node:test";
import { create, equals } from "@bufbuild/protobuf";
import { EventKind, EventSchema } from "../../../src/gen/payments/v1/event_pb.ts";
import { RecentEvents } from "../../../src/ledger/recent-events.ts";
import { traceOf } from "../../../src/ledger/stored-event.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { ofSuite } from "../../of-suite.ts";
import { startRedis, withoutRedis } from "../../redis/server.ts";
import type { RedisLedgerOptions } from "../create.ts";
import { paidByCard } from "../entries.ts";
import { reader, replica } from "./rig.ts";

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

describe("an event that this process stored", { skip: withoutRedis }, () => {
  const server = ofSuite(startRedis);

  it("is the same for readers here as in other processes, without being decrypted", async () => {
    const { events, deadLetters } = await deriveKeyring("shop", [new Secret("password")]);
    const opened = { here: 0, there: 0 };
    const counting = (place: keyof typeof opened): Partial<RedisLedgerOptions> => ({
      keyringOf: () => ({
        deadLetters,
        events: {
          close: events.close,
          open(...sealed) {
            opened[place]++;
            return events.open(...sealed);
          },
        },
      }),
    });
    const prefix = randomUUID();
    const here = await replica(server.url, { prefix, ...counting("here") });
    const there = await replica(server.url, { prefix, ...counting("there") });
    const { event } = await here.log.append("shop", { ...paidByCard(), trace });
    // Only now: live readers may get the event before the commit's answer, and decode it.
    const [own, other] = await Promise.all([here, there].map(({ log }) => reader(log, "earliest")));
    assert.ok(own && other);
    await Promise.all([own.sees(1), other.sees(1)]);
    const [seenHere, seenThere] = [own.seen[0], other.seen[0]];
    assert.ok(event && seenHere && seenThere);
    assert.equal(seenHere, event);
    assert.ok(equals(EventSchema, seenHere, seenThere));
    assert.equal(seenHere.resource.value?.$typeName, "payments.v1.Payment");
    assert.deepEqual([traceOf(seenHere), traceOf(seenThere)], [trace, trace]);
    assert.deepEqual(opened, { here: 0, there: 1 });

    const [kept] = await here.log.history("shop", EventKind.PAYMENT, "order-1", 1);
    assert.equal(kept, event);
    await Promise.all([own.stop(), other.stop()]);
    await Promise.all([here.close(), there.close()]);
  });
});

describe("the newest events of this process", () => {
  const bytes = Buffer.from("bytes");
  const of = (cursor: string) => create(EventSchema, { cursor });

  it("are found by their cursor if the bytes equal the stored ones", () => {
    const own = new RecentEvents();
    const event = of("a");
    own.add({ event, bytes });
    assert.equal(own.find("a", Buffer.from("bytes")), event);
    assert.equal(own.find("b", bytes), undefined);
    assert.equal(own.find("a", Buffer.from("other")), undefined);
  });

  it("are kept up to 256", () => {
    const own = new RecentEvents();
    for (let n = 0; n < 1_000; n++) own.add({ event: of(`${n}`), bytes });
    assert.equal(own.find("743", bytes), undefined);
    assert.ok(own.find("744", bytes));
    assert.ok(own.find("999", bytes));
  });
});

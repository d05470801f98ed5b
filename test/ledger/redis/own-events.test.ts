import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it } from "node:test";
import { equals } from "@bufbuild/protobuf";
import { EventKind, EventSchema } from "../../../src/gen/payments/v1/event_pb.ts";
import { traceOf } from "../../../src/ledger/stored-event.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { activeSpan, noTracing } from "../../../src/telemetry/tracing/tracing.ts";
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
    const span = { ...noTracing.start("callback", { kind: "server" }), traceparent: trace };
    const appending = activeSpan.run(span, () => here.log.append("shop", paidByCard()));
    const { event } = await appending;
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

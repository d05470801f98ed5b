import assert from "node:assert/strict";
import { it } from "node:test";
import type { Entry } from "../../src/events/log.ts";
import { CallOutcome, EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { publishLateEndings } from "../../src/intents/late-ending.ts";
import { startedIntent } from "../../src/intents/redis/writes.ts";
import type { Ending } from "../../src/intents/store.ts";

const endings: readonly [string, Ending, CallOutcome | undefined][] = [
  ["a call that never left is not done", { state: "closed", key: "free" }, CallOutcome.NOT_DONE],
  ["a refusal settles it", { state: "closed", key: Buffer.of(1) }, CallOutcome.SETTLED],
  [
    "so does an answer",
    { state: "pending", subjectId: "p1", key: Buffer.of(1) },
    CallOutcome.SETTLED,
  ],
  ["a reconciler has told it itself", { state: "closed", key: "keep" }, undefined],
  ["an unknown outcome is no news", { state: "unknown" }, undefined],
];

for (const [name, ending, outcome] of endings) {
  it(`a late ending is published if it is news: ${name}`, async () => {
    const entries: Entry[] = [];
    const publish = publishLateEndings({
      async append(_, entry) {
        entries.push(entry);
        return { outcome: "stored", conflict: false, event: entry.event };
      },
    });
    const given = { method: "CreatePayment", kind: EventKind.PAYMENT, leaseMs: 1 } as const;
    const intent = startedIntent({ id: "call", externalId: "order", ...given }, 0, []);
    await publish("default", intent, ending);
    assert.deepEqual(
      entries.map(({ event }) => event.callOutcome),
      outcome === undefined ? [] : [outcome],
    );
    // The payment of a hold may not be in the log yet: then only the note marks it as held.
    assert.ok(entries.every(({ held }) => held === undefined));
  });
}

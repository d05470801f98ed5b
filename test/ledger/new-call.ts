import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import type { Begun, Intent, NewIntent } from "../../src/ledger/intents.ts";

/** A call that is about to begin. */
export function newCall(about: Partial<NewIntent> = {}): NewIntent {
  return {
    ...{ id: randomUUID(), method: "CreatePayment", kind: EventKind.PAYMENT },
    ...{ externalId: "order", leaseMs: 60_000 },
    ...about,
  };
}

/** The call that has begun; fails if it was refused. */
export function started(begun: Begun): Intent {
  assert.ok(begun.kind === "started", `began as ${begun.kind}`);
  return begun.intent;
}

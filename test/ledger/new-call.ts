import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import type { Begun, Intent, NewIntent } from "../../src/ledger/intents.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";

type Of = [log: Pick<Ledger, "begin" | "end">, account: string, about?: Partial<NewIntent>];

/** A call that is about to begin. */
export function newCall(about: Partial<NewIntent> = {}): NewIntent {
  return {
    ...{ id: randomUUID(), method: "CreatePayment", kind: EventKind.PAYMENT },
    ...{ externalId: "order", leaseMs: 60_000 },
    ...about,
  };
}

/** Begins a call; fails if it is refused. */
export async function callBegun(...[log, account, about]: Of): Promise<Intent> {
  return started(await log.begin(account, newCall(about)));
}

/** The same of which no answer comes. */
export async function callLost(...of: Of): Promise<Intent> {
  const intent = await callBegun(...of);
  await of[0].end(of[1], intent, { state: "unknown" });
  return intent;
}

/** The call that has begun; fails if it was refused. */
export function started(begun: Begun): Intent {
  assert.ok(begun.kind === "started", `began as ${begun.kind}`);
  return begun.intent;
}

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { violationsOf } from "../simulation/checks.ts";
import type { CallRecord, LoggedEvent } from "../simulation/history.ts";
import { historyOf, type Told } from "./rig/history.ts";

function call(externalId: string, beganMs: number, answer: Partial<CallRecord>): CallRecord {
  return {
    ...{ id: `${externalId} at ${beganMs}`, request: externalId, externalId, beganMs },
    ...{ method: "CreatePayment", replica: "gateway-0", endedMs: beganMs + 5, ...answer },
  };
}
function logged(cursor: string, callback?: string): LoggedEvent {
  return { cursor, storedMs: 0, externalId: `of ${cursor}`, state: "PAID", callback };
}
const arrived = (externalId: string, atMs: number) => ({ externalId, atMs });
const answers = (...all: number[]) => all.map((status) => ({ atMs: 0, status }));

const [first, second, third] = [logged("1", "c-1"), logged("2"), logged("3", "c-2")];
const shown = (watcher: string, event: LoggedEvent) => ({ ...event, watcher, atMs: 0 });
const inDoubt = { externalId: "c", state: "PAID", unknown: false, needsOperator: false };

/** A run in which all went well. */
const sound: Told = {
  callbacks: [
    { id: "c-1", answers: answers(200) },
    { id: "c-2", answers: answers(503, 503, 200) },
  ],
  calls: [
    call("a", 0, { key: "k", outcome: "unknown" }),
    call("a", 10, { key: "k", outcome: "paid", paymentId: "p-a" }),
    call("b", 0, { outcome: "refused", error: "UNAVAILABLE" }),
    call("c", 0, { outcome: "unknown" }),
  ],
  requests: [arrived("a", 1), arrived("c", 2)],
  shown: [shown("w", first), shown("w", second), shown("w", third), shown("v", third)],
  resumed: [{ watcher: "w", cursor: "0", refused: true }],
  log: [first, second, third],
  inDoubt: [inDoubt],
  gateways: [{ name: "gateway-0", back: true }],
};

/**
 * Faulty runs by the check that must find each; `also` names the only other one. Checks that are not
 * here find a defect that is planted into the simulation.
 */
const planted: Readonly<Record<string, Partial<Told> & { readonly also?: string }>> = {
  "acknowledged, not in the log once": {
    callbacks: [...sound.callbacks, { id: "c-3", answers: answers(503, 200) }],
  },
  "never acknowledged": {
    callbacks: [...sound.callbacks, { id: "c-3", answers: answers(503, 0) }],
  },
  "key sent twice": {
    requests: [...sound.requests, arrived("a", 11)],
    also: "sent while another is open",
  },
  "sent while another is open": { requests: [...sound.requests, arrived("c", 11)] },
  "charged, told as failed": { requests: [...sound.requests, arrived("b", 11)] },
  "told as paid, not charged": { requests: [arrived("c", 2)], also: "told of another payment" },
  "told of another payment": {
    calls: [...sound.calls, call("d", 20, { outcome: "paid", paymentId: "p-c" })],
  },
  "one key, two answers": {
    calls: [...sound.calls, call("a", 20, { key: "k", outcome: "pending", paymentId: "p-c" })],
    also: "told of another payment",
  },
  "shown, not in the log": { shown: [shown("w", logged("4"))] },
  "one callback under two cursors": {
    callbacks: [],
    log: [...sound.log, logged("4", "c-2")],
    shown: [],
  },
  "shown twice or out of order": { shown: [shown("w", third), shown("w", second)] },
  "left out": { shown: [shown("w", first), shown("w", third)] },
  "valid cursor refused": { resumed: [{ watcher: "w", cursor: "2", refused: true }] },
  "paid, then not": {
    shown: [],
    log: [...sound.log, { ...logged("4"), externalId: "of 3", state: "FAILED" }],
  },
  "not settled, nor flagged": { inDoubt: [{ ...inDoubt, state: "UNKNOWN", unknown: true }] },
  "not what the ledger says": { inDoubt: [{ ...inDoubt, state: "FAILED" }] },
  "not an error of ours": {
    calls: [...sound.calls, call("e", 20, { outcome: "refused", error: "INTERNAL x" })],
  },
  "never answered": { calls: [...sound.calls, call("e", 20, {})] },
  "gateway that does not come back": { gateways: [{ name: "gateway-0", back: false }] },
};

describe("the checks on a history of the rig with real processes", () => {
  it("find nothing in a sound run", () => {
    assert.deepEqual(violationsOf(historyOf(sound)), []);
  });

  for (const [name, { also, ...errors }] of Object.entries(planted)) {
    it(`find: ${name}`, () => {
      const found = violationsOf(historyOf({ ...sound, ...errors })).map(({ check }) => check);
      assert.deepEqual(new Set(found), new Set([name, also ?? name]));
    });
  }

  it("find: shown to who asked for another", () => {
    const watchers = [{ id: "w", externalId: "another", from: "0" }];
    const found = violationsOf({ ...historyOf(sound), watchers }).map(({ check }) => check);
    assert.deepEqual(new Set(found), new Set(["shown to who asked for another"]));
  });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { SharedCalls } from "../../src/collections/shared-calls.ts";

/** Calls that are started and answered by hand. */
function rig() {
  const started: { signal: AbortSignal; answer: (value: string) => void }[] = [];
  const start = (signal: AbortSignal) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    started.push({ signal, answer: resolve });
    return { answer: promise };
  };
  return { calls: new SharedCalls<{ answer: Promise<string> }>(), started, start };
}

test("callers share a call, which ends when the last of them leaves", () => {
  const { calls, started, start } = rig();
  const [one, other] = [new AbortController(), new AbortController()];
  const call = calls.join("a", one.signal, start);
  assert.equal(calls.join("a", other.signal, start), call);
  one.abort();
  assert.equal(started[0]?.signal.aborted, false);
  other.abort();
  assert.equal(started[0]?.signal.aborted, true);
  assert.notEqual(calls.join("a", new AbortController().signal, start), call);
  assert.equal(started.length, 2);
});

test("a call that all have left can be joined if it stays", () => {
  const { calls, started, start } = rig();
  const left = new AbortController();
  const call = calls.join("a", left.signal, start, () => true);
  left.abort();
  assert.equal(calls.join("a", new AbortController().signal, start), call);
  assert.equal(started.length, 1);
});

test("a caller that goes away after the answer ends nothing", async () => {
  const { calls, started, start } = rig();
  const caller = new AbortController();
  const call = calls.join("a", caller.signal, start);
  started[0]?.answer("done");
  await call.answer;
  assert.equal(calls.get("a"), undefined);
  caller.abort();
  assert.equal(started[0]?.signal.aborted, false);
});

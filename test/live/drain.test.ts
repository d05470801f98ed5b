import assert from "node:assert/strict";
import { test } from "node:test";
import { Drain } from "../../src/live/drain.ts";

const reason = new Error("shutting down");

/** A stream in the drain, and the reason with which it was ended. */
function join(drain: Drain) {
  const stream: { reason?: Error; leave(): void } = { leave: () => undefined };
  stream.leave = drain.join((given) => {
    stream.reason = given;
  });
  return stream;
}

test("streams end one by one, all within the window", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const drain = new Drain();
  const places = Array.from({ length: 1_000 }, () => join(drain));
  drain.end(reason, 3_000);
  const endedBy = () => places.filter(({ reason }) => reason).length;
  const counts = [0, 1, 2, 3, 4].map(() => {
    const before = endedBy();
    t.mock.timers.tick(600);
    return endedBy() - before;
  });
  assert.equal(endedBy(), places.length);
  for (const count of counts) assert.ok(count > 100 && count < 300, `${counts}`);
  assert.equal(places[0]?.reason, reason);
});

test("a few streams end soon, however long the window", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const drain = new Drain();
  const places = [join(drain), join(drain)];
  drain.end(reason, 60_000);
  t.mock.timers.tick(20);
  assert.ok(places.every(({ reason }) => reason));
});

test("a stream that left is not ended, and one that joins late is ended at once", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const drain = new Drain();
  const gone = join(drain);
  const left = join(drain);
  gone.leave();
  drain.end(reason, 1_000);
  left.leave();
  t.mock.timers.tick(1_000);
  assert.equal(gone.reason, undefined);
  assert.equal(left.reason, undefined);
  assert.equal(join(drain).reason, reason);
});

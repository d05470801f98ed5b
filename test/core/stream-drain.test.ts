import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { createStreamDrain } from "../../src/core/stream-drain.ts";

const reason = new Error("shutting down");

test("streams end one by one, all within the window", (t) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  const drain = createStreamDrain();
  const places = Array.from({ length: 1_000 }, () => drain.join());
  drain.end(reason, 3_000);
  const endedBy = () => places.filter(({ signal }) => signal.aborted).length;
  const counts = [0, 1, 2, 3, 4].map(() => {
    const before = endedBy();
    mock.timers.tick(600);
    return endedBy() - before;
  });
  assert.equal(endedBy(), places.length);
  for (const count of counts) assert.ok(count > 100 && count < 300, `${counts}`);
  assert.equal(places[0]?.signal.reason, reason);
});

test("a few streams end soon, whatever the window", (t) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  const drain = createStreamDrain();
  const places = [drain.join(), drain.join()];
  drain.end(reason, 60_000);
  mock.timers.tick(20);
  assert.ok(places.every(({ signal }) => signal.aborted));
});

test("a stream that left is not ended, and one that comes late ends at once", (t) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  const drain = createStreamDrain();
  const gone = drain.join();
  const left = drain.join();
  gone.leave();
  drain.end(reason, 1_000);
  left.leave();
  mock.timers.tick(1_000);
  assert.equal(gone.signal.aborted, false);
  assert.equal(left.signal.aborted, false);
  assert.equal(drain.join().signal.reason, reason);
});

import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { TakeLog } from "../../src/ratelimit/local/take-log.ts";

it("the take log behaves like a plain list through any sequence of changes", () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ push: fc.integer({ min: 0, max: 3 }) }) },
    { weight: 1, arbitrary: fc.record({ remove: fc.integer({ min: 0, max: 20 }) }) },
    { weight: 1, arbitrary: fc.record({ drop: fc.integer({ min: 0, max: 30 }) }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400, size: "max" }), (steps) => {
      const log = new TakeLog();
      let list: number[] = [];
      let now = 0;
      for (const next of steps) {
        if ("push" in next) {
          now += next.push;
          log.push(now);
          list.push(now);
        } else if ("remove" in next) {
          log.remove(now - next.remove);
          const at = list.lastIndexOf(now - next.remove);
          if (at >= 0) list.splice(at, 1);
        } else {
          log.dropUntil(now - next.drop);
          list = list.filter((time) => time > now - next.drop);
        }
        assert.equal(log.size, list.length);
        assert.deepEqual(
          list.map((_, at) => log.latest(list.length - at)),
          list,
        );
        assert.equal(log.latest(0), -Infinity);
        assert.equal(log.latest(list.length + 1), -Infinity);
      }
    }),
  );
});

it("the take log rounds the time since each take down, by one cell at most", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(7), { maxLength: 200 }),
      fc.integer({ min: 1, max: 10 }),
      fc.nat(50),
      (gaps, cellMs, dropped) => {
        const log = new TakeLog();
        const times: number[] = [];
        let now = 0;
        for (const gap of gaps) {
          now += gap;
          log.push(now);
          times.push(now);
        }
        log.dropFirst(dropped);
        times.splice(0, dropped);
        assert.equal(log.size, times.length);
        const ago = log.ago(now, cellMs).flatMap(([ms, count]) => Array<number>(count).fill(ms));
        assert.equal(ago.length, times.length);
        for (const [nth, time] of times.entries()) {
          const early = now - time - ago[nth]!;
          assert.ok(early >= 0 && early <= cellMs, `${early} ms, cells of ${cellMs} ms`);
        }
      },
    ),
  );
});

import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { TakeLog } from "../../src/ratelimit/local/take-log.ts";

it("the take log agrees with a plain list through any use", () => {
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

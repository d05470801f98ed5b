import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { TakeLog } from "../../src/ratelimit/local/take-log.ts";

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
        log.dropUntil(dropped);
        times.splice(0, times.filter((at) => at <= dropped).length);
        assert.equal(log.length, times.length);
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

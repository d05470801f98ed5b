import assert from "node:assert/strict";
import { test } from "node:test";
import { observedBucket } from "../../src/ratelimit/observed-bucket.ts";
import { createLocalBucket } from "../../src/ratelimit/queued-bucket.ts";
import { reportTo } from "../../src/report.ts";

test("an observed bucket reports waits, refusals and rejections", async () => {
  const told: string[] = [];
  const bucket = observedBucket(
    "shop",
    createLocalBucket({ initialLimit: 1, reserve: 0, maxWaitMs: 5_000 }),
    reportTo({
      tokenAsked: ({ priority }) => void told.push(`${priority} waits`),
      tokenGiven({ account, priority, waitedMs, refused = "served" }) {
        assert.equal(account, "shop");
        assert.ok(waitedMs >= 0);
        told.push(`${priority} ${refused}`);
      },
      tokenRejected: () => void told.push("rejected"),
    }),
  );
  const gone = new AbortController();
  const { signal } = gone;
  (await bucket.take({ priority: "money", signal })).release();
  assert.equal(bucket.status().remaining, 1, "the token went back");
  (await bucket.take({ priority: "read", signal })).rejected({ reset: "2" });
  assert.equal(bucket.status().remaining, 0);
  const waiting = bucket.take({ priority: "money", signal });
  gone.abort();
  await assert.rejects(waiting);
  const impatient = { priority: "read" as const, deadlineMs: Date.now() + 100 };
  await assert.rejects(bucket.take({ ...impatient, signal: new AbortController().signal }));
  await bucket.close();
  assert.deepEqual(told, [
    "money waits",
    "money served",
    "read waits",
    "read served",
    "rejected",
    "money waits",
    "money CANCELLED",
    "read waits",
    "read RESOURCE_EXHAUSTED",
  ]);
});

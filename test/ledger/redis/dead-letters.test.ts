import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GatewayError } from "../../../src/errors.ts";

import { startRedis, withoutRedis } from "../../redis/server.ts";
import { closing, ofSuite } from "../../redis/suite.ts";
import { letter, lettersOf } from "../letters.ts";
import { replica } from "./rig.ts";

describe("dead letters in Redis", { skip: withoutRedis, timeout: 120_000 }, () => {
  const server = ofSuite(startRedis);

  it("of all replicas together stay within the account's share", async (t) => {
    const lettersBound = { letters: 25, bytes: 1_000_000 };
    const replicas = await Promise.all(
      [1, 2].map(() => replica(server.url, { prefix: "share", lettersBound })),
    );
    t.after(() => Promise.all(replicas.map((one) => one.close())));
    const added = await Promise.allSettled(
      Array.from({ length: 40 }, (_, n) =>
        replicas[n % 2]?.log.letters.addDeadLetter("shop", letter(`letter-${n}`)),
      ),
    );
    const refused = added.filter((one) => one.status === "rejected");
    assert.equal(refused.length, 15);
    for (const { reason } of refused) {
      assert.ok(reason instanceof GatewayError);
      assert.equal(reason.details.reason, "DEAD_LETTERS_FULL");
    }
    for (const { log } of replicas) {
      assert.equal((await lettersOf(log, "shop")).length, 25);
      assert.equal(await log.letters.countDeadLetters("shop"), 25);
    }
  });

  it("has room for each one that was removed, once", async (t) => {
    const lettersBound = { letters: 2, bytes: 1_000_000 };
    const one = closing(t, await replica(server.url, { prefix: "room", lettersBound }));
    const { letters } = one.log;
    for (const id of ["a", "b"]) await letters.addDeadLetter("shop", letter(id));
    assert.equal(await letters.removeDeadLetter("shop", "a"), true);
    assert.equal(await letters.removeDeadLetter("shop", "a"), false);
    await letters.addDeadLetter("shop", letter("c"));
    await assert.rejects(letters.addDeadLetter("shop", letter("d")));
    const ids = (await lettersOf(one.log, "shop")).map(({ id }) => id);
    assert.deepEqual(ids, ["b", "c"], "in the order of their arrival");
  });
});

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { freshDirectory } from "../stores/sqlite/directories.ts";
import { until } from "../until.ts";
import { type MoneyUpstream, startMoneyUpstream } from "./money-upstream.ts";
import { password, type Serving, serveBefore } from "./serving.ts";
import { killSpawned } from "./spawn.ts";

/** Times that the gateway is killed: 100 in the long form, `npm run faults`. */
const kills = process.env.FAULTS === "long" ? 100 : 1;

describe("a gateway on DATA_DIR", () => {
  const directory = freshDirectory();
  let upstream: MoneyUpstream;
  before(async () => {
    upstream = await startMoneyUpstream(password);
  });
  after(async () => {
    killSpawned();
    await upstream.close();
    directory.remove();
  });

  async function start() {
    const serving = await serveBefore(upstream.url, {
      ALLOW_VOLATILE: "",
      UPSTREAM_TIMEOUT: "2s",
      RATE_LIMIT_INITIAL: "1000",
      RECONCILE_AFTER: "500ms",
      DATA_DIR: directory.path,
    });
    // Each start has new ports: resent callbacks must go to the gateway that runs now.
    upstream.callbackTo = serving.publicUrl;
    return serving;
  }

  /** Sends a callback for `mark` and reads the events behind the cursor up to that callback's. */
  async function eventsBehind(running: Serving, cursor: string, mark: string) {
    assert.equal(await running.callback(mark), 200);
    const found: { externalId: string; cursor: string }[] = [];
    for await (const { event } of running.events.streamEvents({ afterCursor: cursor })) {
      if (event) found.push(event);
      if (event?.externalId === mark) break;
    }
    return found;
  }

  test("keeps acknowledged callbacks, first answers and unknown outcomes through SIGKILL", async () => {
    let cursor = "earliest";
    const acknowledged: string[] = [];
    for (let round = 0; round < kills; round++) {
      const running = await start();
      const { payment } = await running.pay(`none-${round}`, `key-${round}`);
      assert.equal(payment?.details?.paymentId, `p-none-${round}`);
      // The answer is lost, and the look-ups that follow fail while the service is down.
      upstream.down = true;
      await assert.rejects(running.pay(`resetAfter-${round}`, `lost-${round}`), {
        code: Code.Unknown,
      });
      const storm = Promise.allSettled(
        Array.from({ length: 20 }, async (_, i) => {
          const externalId = `storm-${round}-${i}`;
          if ((await running.callback(externalId)) === 200) acknowledged.push(externalId);
        }),
      );
      await until(() => acknowledged.length > 0);
      await running.kill();
      await storm;

      const again = await start();
      const repeated = acknowledged.at(-1) ?? "";
      assert.equal(await again.callback(repeated), 200);
      const events = await eventsBehind(again, cursor, `mark-${round}`);
      for (const externalId of acknowledged.splice(0)) {
        const found = events.filter((event) => event.externalId === externalId);
        assert.equal(found.length, 1, `${externalId}: there once`);
      }
      cursor = events.at(-1)?.cursor ?? cursor;

      const answered = await again.pay(`none-${round}`, `key-${round}`);
      assert.equal(answered.payment?.details?.paymentId, `p-none-${round}`);
      await assert.rejects(again.pay(`resetAfter-${round}`, `lost-${round}`), {
        code: Code.Unknown,
      });
      const about = { externalId: `resetAfter-${round}` };
      assert.equal((await again.payments.getPayment(about)).outcomeUnknown, true);
      upstream.down = false;
      // The look-up makes the service resend the callback, which settles the outcome.
      await until(async () => !(await again.payments.getPayment(about)).outcomeUnknown);
      assert.equal(upstream.arrivals.get(`none-${round}`), 1);
      assert.equal(upstream.arrivals.get(`resetAfter-${round}`), 1);
      await again.stop();
    }
  });

  test("reports a full disk, and recovers when the disk takes writes again", {
    skip: spawnSync("prlimit", ["--version"]).status === 0 ? false : "needs prlimit",
  }, async () => {
    const running = await start();
    const ready = async () => {
      const answer = await fetch(`${running.adminUrl}/readyz`);
      return { status: answer.status, text: await answer.text() };
    };
    // A limit on the size of files has the same effect as a full disk.
    const limit = (bytes: string) => {
      const args = ["--pid", `${running.spawned.child.pid}`, `--fsize=${bytes}:`];
      assert.equal(spawnSync("prlimit", args).status, 0);
    };
    assert.equal((await ready()).status, 200);
    limit("4096");
    assert.equal(await running.callback("full-1"), 503);
    await assert.rejects(running.pay("none-full", "key-full"), { code: Code.Unavailable });
    assert.equal(upstream.arrivals.get("none-full"), undefined);
    const { status, text } = await ready();
    assert.equal(status, 503);
    assert.match(text, /DATA_DIR fails: /);
    const keyless = await running.pay("none-keyless");
    assert.equal(keyless.payment?.details?.paymentId, "p-none-keyless");
    limit("unlimited");
    await until(async () => (await ready()).status === 200);
    assert.equal(await running.callback("full-1"), 200);
    const { payment } = await running.pay("none-full", "key-full");
    assert.equal(payment?.details?.paymentId, "p-none-full");
    await running.stop();
  });
});

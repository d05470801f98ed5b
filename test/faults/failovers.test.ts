import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { withoutRedis } from "../redis/server.ts";
import { violationsOf } from "../simulation/checks.ts";
import { faults } from "./rig/faults.ts";
import { runFault } from "./rig/run.ts";
import type { Topology } from "./rig/topologies.ts";

/** The short form; all kinds and five seeds each by `npm run faults`. */
const short: readonly [kind: Topology["kind"], fault: string][] = [
  ["sentinel", "primary killed, a Sentinel frozen"],
  ["cluster", "primary killed"],
];

/** A load that leaves the machine time for other tests. */
const everyMs = 60;

describe("three gateways through a failover", { skip: withoutRedis, timeout: 280_000 }, () => {
  for (const [at, [kind, name]] of short.entries()) {
    it(`lose nothing, and all come back: ${kind}, ${name}`, async (t) => {
      const fault = faults[kind][name];
      assert(fault, "there is no such fault");
      const { history, strayLines } = await runFault(kind, fault, at, everyMs);
      const { callbacks, posts, shown, ends } = history;
      t.diagnostic(
        `${callbacks.length} callbacks, ${posts.length} payments, ${shown.length} shown, ${ends.length} unknown`,
      );
      assert(callbacks.length > 40 && posts.length > 20, "the control: there was load");
      assert(shown.length > callbacks.length, "the control: there were watchers");
      assert.deepEqual(violationsOf(history), []);
      assert.deepEqual(strayLines, []);
    });
  }
});

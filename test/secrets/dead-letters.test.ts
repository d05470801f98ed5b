import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "../cli/resident.ts";
import { placesOf } from "../cli/run.ts";
import { sendCallback } from "../gateway/callers.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";

test("neither the console nor the command line shows a secret of a dead letter", {
  timeout: 6 * timeoutMs,
}, async (t) => {
  const gateway = await startTestGateway();
  t.after(() => gateway.stop());
  const nested = JSON.stringify({ cvc: "canary" });
  await sendCallback(gateway, { nested, paid: "canary-kept" });
  const get = async (path: string) => (await fetch(`${gateway.adminUrl}${path}`)).json();
  const { dead_letters: letters } = (await get("/api/dead-letters?account=default")) as {
    dead_letters: { id: string }[];
  };
  const [{ id = "" } = {}, ...others] = letters;
  assert.deepEqual(others, []);
  const { text = "", ...rest } = (await get(`/api/dead-letters/default/${id}`)) as {
    readonly text?: string;
    readonly body?: string;
  };
  assert.equal(rest.body, undefined, "the console has no use for what is not masked");
  const shown = await run(["dead-letters", "show", id], { env: placesOf(gateway) });
  assert.equal(shown.code, 0, shown.err);
  for (const told of [text, shown.out]) {
    assert.match(told, /\[redacted\].*canary-kept/s);
    assert.doesNotMatch(told, /canary(?!-kept)/);
  }
});

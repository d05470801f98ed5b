import assert from "node:assert/strict";
import { it } from "node:test";
import { killAgainAndAgain } from "./kills.ts";

/** 1,000 in the long form, `npm run faults`. */
const kills = Number(process.env.KILLS ?? (process.env.FAULTS === "long" ? 1_000 : 6));
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32));
const timeout = kills * 10_000;

it("acknowledged callbacks and calls survive SIGKILL and a loss of power, each once", {
  timeout,
}, async (t) => {
  t.diagnostic(`SEED=${seed}`);
  const { stored, sent } = await killAgainAndAgain({ kills, seed });
  t.diagnostic(`${kills} kills, ${stored} callbacks and ${sent} calls acknowledged before them`);
  assert.ok(stored > kills && sent > 0, "there was something to lose");
});

it("control: without syncs a loss of power loses acknowledged data", { timeout }, async () => {
  await assert.rejects(
    killAgainAndAgain({ kills: 10, seed, synchronous: "OFF" }),
    /acknowledged, and there once|damaged|would be sent again|still unknown|keyUnknown|keyAnswered|cursor/,
  );
});

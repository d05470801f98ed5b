import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Heartbeats } from "../../src/live/heartbeats.ts";

const intervalMs = 15_000;
const tickMs = 50;

/** Heartbeats with a clock that the test controls. */
function newHeartbeats(t: TestContext, turns: "mocked" | "real" = "mocked") {
  const immediate = turns === "mocked" ? (["setImmediate"] as const) : [];
  t.mock.timers.enable({ apis: ["setInterval", ...immediate] });
  let nowMs = 1_000;
  const heartbeats = new Heartbeats(intervalMs, () => nowMs);
  return {
    heartbeats,
    now: () => nowMs,
    /** Advances the clock by `ms`; the timer fires only once in each `everyMs`. */
    pass(ms: number, everyMs = tickMs) {
      for (let left = ms; left > 0; left -= everyMs) {
        nowMs += everyMs;
        t.mock.timers.tick(tickMs);
      }
    },
  };
}

test("a silent stream sends heartbeats, each within the interval", (t) => {
  const { heartbeats, now, pass } = newHeartbeats(t);
  const beatsMs: number[] = [];
  const openedMs = now();
  heartbeats.add(() => beatsMs.push(now()));
  pass(3 * intervalMs);
  const silencesMs = beatsMs.map((ms, i) => ms - (beatsMs[i - 1] ?? openedMs));
  assert.equal(silencesMs.length, 3);
  for (const ms of silencesMs) assert.ok(ms >= intervalMs / 2 && ms <= intervalMs, `${ms}`);
});

test("a stream that sends events sends no heartbeat until it is silent", (t) => {
  const { heartbeats, now, pass } = newHeartbeats(t);
  let beatMs: number | undefined;
  const heartbeat = heartbeats.add(() => {
    beatMs ??= now();
  });
  for (let i = 0; i < 20; i++) {
    pass(intervalMs / 2 - tickMs);
    assert.equal(beatMs, undefined);
    heartbeat.spoke();
  }
  const spokeMs = now();
  pass(intervalMs);
  assert.ok(beatMs !== undefined && beatMs - spokeMs >= intervalMs / 2);
});

test("streams that open or send at the same time send their heartbeats a few at a time", (t) => {
  const { heartbeats, pass } = newHeartbeats(t);
  const streams = 1_500;
  let beats = 0;
  const all = Array.from({ length: streams }, () => heartbeats.add(() => beats++));
  const inOneInterval = () => {
    let most = 0;
    let sum = 0;
    for (let ms = 0; ms < intervalMs; ms += tickMs) {
      beats = 0;
      pass(tickMs);
      most = Math.max(most, beats);
      sum += beats;
    }
    return { most, sum };
  };
  // Half of the interval has 150 ticks; each checks another 10 of the 1,500 streams.
  assert.deepEqual(inOneInterval(), { most: 10, sum: streams });
  for (const each of all) each.spoke();
  assert.deepEqual(inOneInterval(), { most: 10, sum: streams });
});

test("a process that was blocked makes up only one check of each stream", (t) => {
  const { heartbeats, pass } = newHeartbeats(t);
  let beats = 0;
  for (let i = 0; i < 300; i++) heartbeats.add(() => beats++);
  pass(10 * intervalMs, 10 * intervalMs);
  assert.equal(beats, 0, "each has been looked at once");
  pass(10 * intervalMs, 10 * intervalMs);
  assert.equal(beats, 300);
});

test("overdue checks run a few at a time, each in a turn of the event loop", async (t) => {
  const { heartbeats, pass } = newHeartbeats(t, "real");
  let beats = 0;
  for (let i = 0; i < 300; i++) heartbeats.add(() => beats++);
  const most: number[] = [];
  for (const expected of [0, 300]) {
    beats = 0;
    pass(10 * intervalMs, 10 * intervalMs);
    // 150 slots of two streams, each checked in a turn of its own.
    for (let turn = 0, before = 0; turn < 150; turn++) {
      most.push(beats - before);
      before = beats;
      await new Promise(setImmediate);
    }
    assert.equal(beats, expected);
  }
  assert.equal(Math.max(...most), 2);
});

test("the timer runs while there are streams", (t) => {
  const { heartbeats, pass } = newHeartbeats(t);
  const beats: string[] = [];
  const [first, second] = ["first", "second"].map((name) => heartbeats.add(() => beats.push(name)));
  first?.stop();
  first?.stop();
  pass(intervalMs);
  assert.deepEqual(beats, ["second"]);
  second?.stop();
  pass(2 * intervalMs);
  assert.deepEqual(beats, ["second"]);
  heartbeats.add(() => beats.push("third")).stop();
  heartbeats.add(() => beats.push("fourth"));
  pass(intervalMs);
  assert.deepEqual(beats, ["second", "fourth"]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryBudget } from "../../src/net/memory-budget.ts";

test("beyond the budget the largest and oldest bodies are dropped, and no more than needed", (t) => {
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  const budget = createMemoryBudget(800);
  const cut: string[] = [];
  // Each body has a connection of its own, which may take a quarter.
  const open = (name: string) => budget.open({}, () => cut.push(name));
  const slow = open("slow");
  slow.hold(120);
  nowMs = 10_000;
  const large = [open("large"), open("large"), open("large")];
  for (const body of large) body.hold(200);
  const small = open("small");
  small.hold(80);
  assert.deepEqual(cut, []);
  open("new").hold(20);
  assert.deepEqual(cut, ["slow"], "of 120 bytes, but ten seconds old");
  assert.equal(budget.bytes, 700);

  nowMs = 11_000;
  open("newer").hold(150);
  assert.deepEqual(cut, ["slow", "large"]);
  slow.close();
  slow.hold(1_000);
  assert.equal(budget.bytes, 650, "what was cut counts no more");
  for (const body of large) body.close();
  small.close();
  assert.equal(budget.bytes, 170);
});

test("one connection may take a quarter of the budget", () => {
  const budget = createMemoryBudget(800);
  const greedy = {};
  let cuts = 0;
  const open = (connection: object) => budget.open(connection, () => cuts++);
  open({}).hold(200);
  for (let n = 0; n < 4; n++) open(greedy).hold(50);
  assert.deepEqual([cuts, budget.bytes], [0, 400]);
  open(greedy).hold(10);
  assert.deepEqual([cuts, budget.bytes], [1, 360], "until an eighth of its share is free");
});

test("unread answers count against the same budget, and the largest side is cut", (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const budget = createMemoryBudget(800);
  const cut: number[] = [];
  for (const bytes of [500, 250, 100]) {
    const answer = budget.watch({
      bytes: () => bytes,
      cut() {
        cut.push(bytes);
        answer.leave();
      },
    });
  }
  t.mock.timers.tick(500);
  assert.deepEqual(cut, [500], "350 bytes are less than seven eighths");
  let drops = 0;
  for (let n = 0; n < 3; n++) budget.open({}, () => drops++).hold(150);
  assert.equal(drops, 0, "350 and 450 bytes fit");
  budget.open({}, () => drops++).hold(10);
  assert.equal(drops, 1);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { type CallKind, createAdmission, type Slot } from "../../src/net/admission.ts";

/** An admission whose time and whose turns are the test's. */
function createRig(maxCalls: number | undefined) {
  let nowMs = 1_000_000;
  let turn: (() => void)[] = [];
  const admission = createAdmission({
    maxCalls,
    clock: { now: () => nowMs, nextTurn: (callback) => void turn.push(callback) },
  });
  const begun: string[] = [];
  const refused: string[] = [];
  const places = new Map<string, Slot>();

  return {
    admission,
    begun,
    refused,
    places,
    now: () => nowMs,
    wait(ms: number) {
      nowMs += ms;
    },
    /** Lets a call arrive that keeps the loop busy for `workMs` and then is over, or else stays. */
    arrive(
      name: string,
      kind: CallKind = "other",
      {
        owner = "one",
        workMs,
        timeoutMs,
        isGone = () => false,
      }: { owner?: string; workMs?: number; timeoutMs?: number; isGone?: () => boolean } = {},
    ) {
      admission.enter({
        kind,
        owner: owners[owner] ?? {},
        timeoutMs,
        isGone,
        start(slot) {
          begun.push(name);
          places.set(name, slot);
          if (workMs === undefined) return;
          nowMs += workMs;
          slot.leave();
        },
        refuse: () => refused.push(name),
      });
    },
    /** Runs one turn of the loop. */
    turn() {
      const callbacks = turn;
      turn = [];
      for (const callback of callbacks) callback();
      return callbacks.length > 0;
    },
    turns() {
      while (this.turn());
    },
  };
}

const owners: Readonly<Record<string, object>> = { one: {}, two: {}, three: {} };
const names = (n: number, prefix = "") => Array.from({ length: n }, (_, i) => `${prefix}${i}`);

test("other calls fill four fifths of the places, those that move money all", () => {
  const rig = createRig(10);
  for (const name of names(8)) rig.arrive(name);
  rig.turns();
  rig.arrive("too many");
  rig.arrive("unknown", "unknown");
  rig.arrive("money", "money");
  rig.turns();
  assert.deepEqual(rig.begun, [...names(8), "unknown", "money"]);
  assert.deepEqual(rig.refused, ["too many"]);
  assert.equal(rig.places.get("0")?.moneyOnly, false);
  assert.equal(rig.places.get("unknown")?.moneyOnly, true);
  assert.equal(rig.admission.inFlight, 10);
  rig.arrive("money too many", "money");
  rig.arrive("health", "exempt");
  rig.turns();
  assert.deepEqual(rig.refused, ["too many", "money too many"]);
  assert.equal(rig.begun.at(-1), "health");
  assert.equal(rig.admission.inFlight, 10, "what is exempt takes no place");
});

test("calls that arrive together are counted one by one", () => {
  const rig = createRig(10);
  for (const name of names(30)) rig.arrive(name, "money");
  rig.turns();
  assert.equal(rig.begun.length, 10);
  assert.equal(rig.refused.length, 20);
});

test("a place is given back once, and one that waits for its client does not count", () => {
  const rig = createRig(10);
  rig.arrive("call");
  rig.turns();
  const slot = rig.places.get("call");
  slot?.suspend();
  slot?.suspend();
  assert.equal(rig.admission.inFlight, 0);
  slot?.resume();
  slot?.resume();
  assert.equal(rig.admission.inFlight, 1);
  slot?.leave();
  slot?.leave();
  slot?.resume();
  assert.equal(rig.admission.inFlight, 0);
});

test("connections take turns, so that one that sends a thousand holds nobody up", () => {
  const rig = createRig(1_000);
  for (const name of names(500, "flood ")) rig.arrive(name, "other", { workMs: 1 });
  rig.arrive("neighbour", "other", { owner: "two", workMs: 1 });
  rig.turn();
  assert.deepEqual(rig.begun.slice(0, 3), ["flood 0", "neighbour", "flood 1"]);
  rig.turns();
  assert.equal(rig.begun.length, 501);
});

test("a turn begins a few calls, and fewer where they take long", () => {
  const quick = createRig(1_000);
  for (const name of names(100)) quick.arrive(name, "other", { workMs: 0.1 });
  quick.turn();
  assert.equal(quick.begun.length, 16);
  const slow = createRig(1_000);
  for (const name of names(100)) slow.arrive(name, "other", { workMs: 6 });
  slow.turn();
  assert.equal(slow.begun.length, 2);
});

test("calls whose clients left before their turn cost nothing", () => {
  const rig = createRig(1_000);
  for (const name of names(1_000)) rig.arrive(name, "other", { isGone: () => true });
  rig.arrive("stays");
  rig.turn();
  assert.deepEqual(rig.begun, ["stays"]);
  rig.turns();
  assert.deepEqual(rig.refused, []);
  assert.equal(rig.admission.inFlight, 1);
});

/** Calls of 1 ms of which three come each millisecond, for nine seconds. */
function overload(rig: ReturnType<typeof createRig>, kindOf: (i: number) => CallKind) {
  const beganMs = rig.now();
  for (let i = 0; i < 27_000; ) {
    for (; i < 27_000 && i <= 3 * (rig.now() - beganMs); i++) {
      rig.arrive(`${i}`, kindOf(i), { owner: i % 2 === 0 ? "one" : "two", workMs: 1 });
    }
    rig.turn();
  }
  rig.turns();
  return rig.now() - beganMs;
}

test("a standing queue sheds what it can't serve in time, and serves as much as ever", () => {
  const rig = createRig(10_000);
  const tookMs = overload(rig, () => "other");
  assert.equal(rig.begun.length + rig.refused.length, 27_000);
  // As many as there were milliseconds, and nothing goes on for long when no more come.
  assert.ok(rig.begun.length > 8_900, `${rig.begun.length} begun`);
  assert.ok(tookMs < 9_100, `${tookMs} ms`);
});

test("where each turn comes late, it still begins some of those that wait", () => {
  const rig = createRig(10_000);
  // Somebody else has the processor, all but a millisecond of every hundred.
  for (let turn = 0; turn < 200; turn++) {
    for (const name of names(50, `${turn} `)) rig.arrive(name, "money", { timeoutMs: 1_000 });
    rig.wait(100);
    rig.turn();
  }
  assert.ok(rig.begun.length > 3_000, `${rig.begun.length} begun`);
  assert.ok(rig.refused.length > 6_000, `${rig.refused.length} refused`);
});

test("where there is too much of both, other calls are refused and money is not", () => {
  const rig = createRig(10_000);
  overload(rig, (i) => (i % 5 === 0 ? "money" : "other"));
  // All that waited when the queue turned out to be a standing one is late.
  const money = rig.refused.filter((name) => Number(name) > 10_000 && Number(name) % 5 === 0);
  assert.ok(rig.refused.length > 13_000, `${rig.refused.length} refused`);
  assert.deepEqual(money, []);
});

test("a connection with one call waiting is served where one that floods is refused", () => {
  const rig = createRig(10_000);
  let asked = 0;
  overload(rig, (i) => {
    if (i > 10_000 && i % 90 === 0) rig.arrive(`neighbour ${asked++}`, "other", { owner: "three" });
    return "other";
  });
  assert.ok(rig.refused.length > 13_000);
  assert.deepEqual(
    rig.refused.filter((name) => name.startsWith("neighbour")),
    [],
  );
  assert.equal(rig.begun.filter((name) => name.startsWith("neighbour")).length, asked);
});

test("a call that could not be answered in its client's time is refused at once", () => {
  const rig = createRig(1_000);
  for (const name of names(200)) rig.arrive(name, "money", { workMs: 10 });
  while (rig.begun.length < 100) rig.turn();
  // Of the hundred calls that are before them, each takes ten milliseconds.
  rig.arrive("hurried", "money", { timeoutMs: 1_000, workMs: 10 });
  assert.deepEqual(rig.refused, ["hurried"]);
  rig.arrive("patient", "money", { timeoutMs: 5_000, workMs: 10 });
  rig.arrive("elsewhere", "money", { timeoutMs: 1_000, workMs: 10, owner: "two" });
  rig.turns();
  assert.deepEqual(rig.refused, ["hurried"]);
  assert.equal(rig.begun.length, 202);
});

for (const kind of ["other", "money", "watch"] as const) {
  test(`a ${kind} whose deadline is over begins on an idle process: it is told that, not of an overload`, () => {
    const rig = createRig(1_000);
    rig.arrive("over", kind, { timeoutMs: 0 });
    rig.wait(1);
    rig.turns();
    assert.deepEqual([rig.begun, rig.refused], [["over"], []]);
  });
}

test("a call of a connection of its own waits behind all other connections", () => {
  const rig = createRig(1_000);
  for (const name of names(200)) rig.arrive(name, "money", { workMs: 10, owner: `own ${name}` });
  while (rig.begun.length < 100) rig.turn();
  rig.arrive("hurried", "money", { timeoutMs: 1_000, workMs: 10, owner: "yet another" });
  assert.deepEqual(rig.refused, ["hurried"]);
});

test("a call that waited longer than was expected is let off until it is hopeless", () => {
  const rig = createRig(1_000);
  for (const name of names(60)) rig.arrive(name, "money", { workMs: 10, timeoutMs: 700 });
  rig.arrive("last", "money", { timeoutMs: 1_000, workMs: 10 });
  rig.turns();
  // Nothing was known of the sixty when they came: 490 ms, 70 of a hundred, are gone with 49 of them.
  assert.deepEqual(rig.begun.at(-1), "last");
  assert.deepEqual(rig.refused, names(60).slice(-10));
});

test("a burst is served whole, however long it takes", () => {
  const rig = createRig(1_000);
  for (const name of names(500)) rig.arrive(name, "other", { workMs: 1.5 });
  rig.turns();
  assert.equal(rig.begun.length, 500);
  // And another one, as soon as the first is through.
  for (const name of names(500)) rig.arrive(name, "other", { workMs: 1.5 });
  rig.turns();
  assert.equal(rig.begun.length, 1_000);
});

/** Thousands whose replica died, each on a connection of its own; a millisecond of work each. */
function comeBack(rig: ReturnType<typeof createRig>, count: number, kind: CallKind) {
  for (const name of names(count, `${kind} `)) {
    rig.arrive(name, kind, { owner: name, workMs: 1 });
  }
}

test("a call goes before the watches that wait", () => {
  const rig = createRig(10_000);
  comeBack(rig, 2_000, "watch");
  rig.turn();
  rig.arrive("payment", "money", { owner: "two", timeoutMs: 1_000 });
  rig.turn();
  const at = rig.begun.indexOf("payment");
  assert.ok(at >= 0 && at <= 20, `begun as number ${at}`);
});

test("control: calls that are no watches go in the order in which they came", () => {
  const rig = createRig(10_000);
  comeBack(rig, 2_000, "other");
  rig.turn();
  rig.arrive("payment", "money", { owner: "two", timeoutMs: 1_000 });
  rig.turn();
  assert.equal(rig.begun.includes("payment"), false);
});

test("watches that come back together all begin, and no call is refused for them", () => {
  const rig = createRig(10_000);
  comeBack(rig, 6_000, "watch");
  for (let call = 0; rig.turn(); call++) {
    if (call < 200) rig.arrive(`call ${call}`, "other", { owner: "two", workMs: 1 });
  }
  assert.deepEqual(rig.refused, []);
  assert.equal(rig.begun.length, 6_200);
});

test("control: as many calls, which are late for so long, are refused", () => {
  const rig = createRig(10_000);
  comeBack(rig, 6_000, "other");
  rig.turns();
  assert.ok(rig.refused.length > 1_000, `${rig.refused.length} refused`);
});

test("a watch that would wait for ten seconds is refused, and comes back", () => {
  const rig = createRig(20_000);
  comeBack(rig, 100, "watch");
  rig.turns();
  comeBack(rig, 15_000, "watch");
  assert.ok(rig.refused.length > 1_000, `${rig.refused.length} refused`);
  rig.turns();
  assert.equal(rig.begun.length + rig.refused.length, 15_100);
});

test("where calls never stop, watches still begin", () => {
  const rig = createRig(10_000);
  comeBack(rig, 1_000, "watch");
  overload(rig, () => "other");
  const watches = rig.begun.filter((name) => name.startsWith("watch"));
  assert.equal(watches.length, 1_000);
});

test("control: without a limit nothing is refused", () => {
  const rig = createRig(undefined);
  overload(rig, () => "other");
  assert.deepEqual(rig.refused, []);
  assert.equal(rig.begun.length, 27_000);
});

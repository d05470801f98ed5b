import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { type CallKind, createAdmission, type Slot } from "../../src/net/admission.ts";

/** An admission whose clock and whose turns of the event loop the test controls. */
function createRig(maxCalls: number | undefined) {
  let nowMs = 1_000_000;
  let turn: (() => void)[] = [];
  // A mock of a mock would be what is restored at the end.
  mock.restoreAll();
  mock.method(performance, "now", () => nowMs);
  mock.method(globalThis, "setImmediate", (callback: () => void) => void turn.push(callback));
  const admission = createAdmission({ maxCalls });
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
    /** Lets a call arrive. It keeps the loop busy for `workMs` and ends; without it, it stays. */
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

afterEach(() => mock.restoreAll());

const owners: Readonly<Record<string, object>> = { one: {}, two: {}, three: {} };
const names = (n: number, prefix = "") => Array.from({ length: n }, (_, i) => `${prefix}${i}`);

test("other calls fill four fifths of the slots, calls that move money fill all", () => {
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

test("watches fill four fifths of the slots, and leave the rest to calls that move money", () => {
  const rig = createRig(10);
  for (const name of names(8)) rig.arrive(name, "watch");
  rig.arrive("late watch", "watch");
  rig.turns();
  rig.arrive("watch", "watch");
  rig.arrive("money", "money");
  rig.turns();
  assert.deepEqual(rig.begun, [...names(8), "money"]);
  assert.deepEqual(rig.refused, ["late watch", "watch"]);
});

test("calls that arrive together are counted one by one", () => {
  const rig = createRig(10);
  for (const name of names(30)) rig.arrive(name, "money");
  rig.turns();
  assert.equal(rig.begun.length, 10);
  assert.equal(rig.refused.length, 20);
});

test("a slot is given back once, and does not count while its call waits for its client", () => {
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

test("connections take turns, so that a flood on one does not delay the others", () => {
  const rig = createRig(1_000);
  for (const name of names(500, "flood ")) rig.arrive(name, "other", { workMs: 1 });
  rig.arrive("neighbour", "other", { owner: "two", workMs: 1 });
  rig.turn();
  assert.deepEqual(rig.begun.slice(0, 3), ["flood 0", "neighbour", "flood 1"]);
  rig.turns();
  assert.equal(rig.begun.length, 501);
});

test("a turn begins a few calls, and fewer if they take long", () => {
  const quick = createRig(1_000);
  for (const name of names(100)) quick.arrive(name, "other", { workMs: 0.1 });
  quick.turn();
  assert.equal(quick.begun.length, 16);
  const slow = createRig(1_000);
  for (const name of names(100)) slow.arrive(name, "other", { workMs: 6 });
  slow.turn();
  assert.equal(slow.begun.length, 2);
});

test("calls whose clients left before their turn are dropped", () => {
  const rig = createRig(1_000);
  for (const name of names(1_000)) rig.arrive(name, "other", { isGone: () => true });
  rig.arrive("stays");
  rig.turn();
  assert.deepEqual(rig.begun, ["stays"]);
  rig.turns();
  assert.deepEqual(rig.refused, []);
  assert.equal(rig.admission.inFlight, 1);
});

/** Nine seconds in which three calls of 1 ms each arrive in every millisecond. */
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

test("a standing queue sheds the calls that it can't serve in time, and serves no fewer", () => {
  const rig = createRig(10_000);
  const tookMs = overload(rig, () => "other");
  assert.equal(rig.begun.length + rig.refused.length, 27_000);
  // About one call in each millisecond; the queue is empty soon after the last arrival.
  assert.ok(rig.begun.length > 8_900, `${rig.begun.length} begun`);
  assert.ok(tookMs < 9_100, `${tookMs} ms`);
});

test("a turn that comes late still begins some of the waiting calls", () => {
  const rig = createRig(10_000);
  // Another process has the CPU: 100 ms pass before each turn.
  for (let turn = 0; turn < 200; turn++) {
    for (const name of names(50, `${turn} `)) rig.arrive(name, "money", { timeoutMs: 1_000 });
    rig.wait(100);
    rig.turn();
  }
  assert.ok(rig.begun.length > 3_000, `${rig.begun.length} begun`);
  assert.ok(rig.refused.length > 6_000, `${rig.refused.length} refused`);
});

test("when there are too many calls, other calls are refused and those that move money are not", () => {
  const rig = createRig(10_000);
  overload(rig, (i) => (i % 5 === 0 ? "money" : "other"));
  // Calls that already waited when the queue became a standing one are late: they do not count.
  const money = rig.refused.filter((name) => Number(name) > 10_000 && Number(name) % 5 === 0);
  assert.ok(rig.refused.length > 13_000, `${rig.refused.length} refused`);
  assert.deepEqual(money, []);
});

test("a connection with one waiting call is served while connections that flood are refused", () => {
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

test("a call that could not be answered before its client's time-out is refused at once", () => {
  const rig = createRig(1_000);
  for (const name of names(200)) rig.arrive(name, "money", { workMs: 10 });
  while (rig.begun.length < 100) rig.turn();
  // On connection `one`, a hundred calls of 10 ms each are waiting.
  rig.arrive("hurried", "money", { timeoutMs: 1_000, workMs: 10 });
  assert.deepEqual(rig.refused, ["hurried"]);
  rig.arrive("patient", "money", { timeoutMs: 5_000, workMs: 10 });
  rig.arrive("elsewhere", "money", { timeoutMs: 1_000, workMs: 10, owner: "two" });
  rig.turns();
  assert.deepEqual(rig.refused, ["hurried"]);
  assert.equal(rig.begun.length, 202);
});

for (const kind of ["other", "money", "watch"] as const) {
  test(`a call (${kind}) past its deadline begins on an idle process, instead of reporting an overload`, () => {
    const rig = createRig(1_000);
    rig.arrive("over", kind, { timeoutMs: 0 });
    rig.wait(1);
    rig.turns();
    assert.deepEqual([rig.begun, rig.refused], [["over"], []]);
  });
}

test("a call on a connection of its own waits behind all other connections", () => {
  const rig = createRig(1_000);
  for (const name of names(200)) rig.arrive(name, "money", { workMs: 10, owner: `own ${name}` });
  while (rig.begun.length < 100) rig.turn();
  rig.arrive("hurried", "money", { timeoutMs: 1_000, workMs: 10, owner: "yet another" });
  assert.deepEqual(rig.refused, ["hurried"]);
});

test("a call that waits longer than expected is refused only at 1.75 times the longest wait", () => {
  const rig = createRig(1_000);
  for (const name of names(60)) rig.arrive(name, "money", { workMs: 10, timeoutMs: 700 });
  rig.arrive("last", "money", { timeoutMs: 1_000, workMs: 10 });
  rig.turns();
  // No cost was known when the sixty arrived. Each may wait for 490 ms, 70 % of its time-out: the
  // last ten would begin later.
  assert.deepEqual(rig.begun.at(-1), "last");
  assert.deepEqual(rig.refused, names(60).slice(-10));
});

test("a burst is served completely", () => {
  const rig = createRig(1_000);
  for (const name of names(500)) rig.arrive(name, "other", { workMs: 1.5 });
  rig.turns();
  assert.equal(rig.begun.length, 500);
  // A second burst, as soon as the first is served.
  for (const name of names(500)) rig.arrive(name, "other", { workMs: 1.5 });
  rig.turns();
  assert.equal(rig.begun.length, 1_000);
});

test("a burst after an idle time is served completely", () => {
  const rig = createRig(10_000);
  rig.wait(60_000);
  comeBack(rig, 1_000, "other");
  rig.turns();
  assert.deepEqual(rig.refused, []);
  assert.equal(rig.begun.length, 1_000);
});

/** Calls of clients whose replica died, each on a connection of its own, with 1 ms of work each. */
function comeBack(rig: ReturnType<typeof createRig>, count: number, kind: CallKind) {
  for (const name of names(count, `${kind} `)) {
    rig.arrive(name, kind, { owner: name, workMs: 1 });
  }
}

test("a call begins before waiting watches", () => {
  const rig = createRig(10_000);
  comeBack(rig, 2_000, "watch");
  rig.turn();
  rig.arrive("payment", "money", { owner: "two", timeoutMs: 1_000 });
  rig.turn();
  const at = rig.begun.indexOf("payment");
  assert.ok(at >= 0 && at <= 20, `begun as number ${at}`);
});

test("control: a call does not begin before other waiting calls", () => {
  const rig = createRig(10_000);
  comeBack(rig, 2_000, "other");
  rig.turn();
  rig.arrive("payment", "money", { owner: "two", timeoutMs: 1_000 });
  rig.turn();
  assert.equal(rig.begun.includes("payment"), false);
});

test("watches that reconnect together all begin, and cause no call to be refused", () => {
  const rig = createRig(10_000);
  comeBack(rig, 6_000, "watch");
  for (let call = 0; rig.turn(); call++) {
    if (call < 200) rig.arrive(`call ${call}`, "other", { owner: "two", workMs: 1 });
  }
  assert.deepEqual(rig.refused, []);
  assert.equal(rig.begun.length, 6_200);
});

test("control: as many calls, which are late for as long, are refused", () => {
  const rig = createRig(10_000);
  comeBack(rig, 6_000, "other");
  rig.turns();
  assert.ok(rig.refused.length > 1_000, `${rig.refused.length} refused`);
});

test("a watch that would wait for more than ten seconds is refused", () => {
  const rig = createRig(20_000);
  comeBack(rig, 100, "watch");
  rig.turns();
  comeBack(rig, 15_000, "watch");
  assert.ok(rig.refused.length > 1_000, `${rig.refused.length} refused`);
  rig.turns();
  assert.equal(rig.begun.length + rig.refused.length, 15_100);
});

test("watches still begin while calls never stop", () => {
  const rig = createRig(10_000);
  comeBack(rig, 1_000, "watch");
  overload(rig, () => "other");
  const watches = rig.begun.filter((name) => name.startsWith("watch"));
  assert.equal(watches.length, 1_000);
});

test("control: without a limit no call is refused", () => {
  const rig = createRig(undefined);
  overload(rig, () => "other");
  assert.deepEqual(rig.refused, []);
  assert.equal(rig.begun.length, 27_000);
});

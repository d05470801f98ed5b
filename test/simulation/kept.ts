import {
  type Echo,
  isPayout,
  type PayStep,
  type Plan,
  type Step,
  type StoreTrouble,
  type WatchStep,
} from "./plan.ts";

function plan(about: Partial<Plan>, steps: readonly Step[]): Plan {
  return { seed: 1, perSecond: 50, replicas: 1, steps, ...about };
}

/** A call by its name: `order-0.1` pays `order-0`, `order-0.c1` confirms it, `out-0.1` is a payout. */
function pay(atMs: number, id: string, about: Partial<PayStep> = {}): PayStep {
  const [externalId = ""] = id.split(".");
  const made = id.includes(".c") ? "ConfirmPayment" : "CreatePayment";
  return {
    ...{ do: "pay", atMs, id, method: isPayout(externalId) ? "RequestPayout" : made, externalId },
    ...{ replica: 0, turns: [], callbacks: "soon", retries: 0, echoes: [] },
    ...about,
  };
}

/** A repeat of a call with its key. */
function again(afterMs: number, replica = 0): Echo {
  return { afterMs, replica };
}

/** A watch by its name: `order-0-w1` is of `order-0`, `all-1` of the account. */
function watch(atMs: number, id: string, about: Partial<WatchStep> = {}): WatchStep {
  const [, externalId] = /^(.*)-w\d$/.exec(id) ?? [];
  const of = externalId === undefined ? {} : { externalId };
  return { do: "watch", atMs, id, replica: 0, cutsAfterMs: [], ...of, ...about };
}

function look(atMs: number, externalId: string, replica = 0): Step {
  return { do: "look", atMs, externalId, replica };
}

function pause(atMs: number, forMs: number, replica = 0): Step {
  return { do: "pause", atMs, forMs, replica };
}

function failOver(atMs: number, aheadMs: number): Step {
  return { do: "failOver", atMs, aheadMs };
}

function store(
  atMs: number,
  forMs: number,
  trouble: StoreTrouble,
  replica: number | "all" = 0,
  share = 1,
): Step {
  return { do: "store", atMs, forMs, replica, trouble, share };
}

function many<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n));
}

/** Shrunk histories that once broke a promise, or would. The tests run them each time. */
export const kept = {
  "a payment is answered, and the store does not hear of it": plan({}, [
    pay(1_000, "order-0.1", { turns: ["pending"], callbacks: "late" }),
    store(1_004, 200, "losesRequests"),
    look(2_500, "order-0"),
  ]),
  "a payout failed, the next one is on its way, and the store is silent": plan({}, [
    pay(1_000, "out-0.1", { turns: ["decline"] }),
    pay(1_500, "out-0.2", { turns: ["payLate"] }),
    store(3_510, 3_000, "losesAnswers"),
    look(3_520, "out-0"),
  ]),
  "a hold is paid, and the store hears of it by the callback alone": plan({}, [
    pay(1_000, "order-0.1", { held: true }),
    store(1_002, 8_000, "losesRequests"),
  ]),
  "a lost call turns out as not done while a watch begins": plan({}, [
    pay(1_000, "order-0.1", { turns: ["silenceBefore"] }),
    watch(31_314, "w0", { externalId: "order-0" }),
  ]),
  "a key is answered again by a gateway whose store is silent": plan({ replicas: 2 }, [
    pay(1_000, "order-0.1", {
      echoes: [again(2_000, 1)],
      key: "key",
      deadlineMs: 400,
    }),
    store(3_006, 8_000, "losesAnswers", 1),
  ]),
  "a key's answer does not reach the store at once": plan({}, [
    pay(1_000, "order-0.1", { key: "key" }),
    store(1_012, 200, "losesRequests"),
  ]),
  "a key's answer reaches the store when its lease is over": plan(
    { seed: 33_446, perSecond: 5, replicas: 3 },
    [
      pay(478, "order-1.1", {
        callbacks: "twice",
        echoes: [again(7_463, 1)],
        key: "key-order-1.1",
        deadlineMs: 1_500,
      }),
      store(482, 14_000, "losesRequests", "all"),
    ],
  ),
  "a call that never left is freed late": plan({ replicas: 2 }, [
    pay(1_000, "out-0.1", { replica: 1 }),
    store(1_000, 100, "losesAnswers", 1),
    pause(1_300, 14_000, 1),
    pay(20_000, "out-0.2", { turns: ["decline"] }),
  ]),
  "a call that never left is freed when its own gateway is about to look it up": plan(
    { seed: 50_937 },
    [
      pay(8_993, "order-0.1", {
        method: "CreateRecurrentPayment",
        turns: ["decline"],
        callbacks: "never",
        echoes: [again(1), again(79)],
        key: "key-order-0.1",
      }),
      pay(9_322, "order-0.2", {
        method: "CreateRecurrentPayment",
        turns: ["tooMany"],
        callbacks: "reversed",
        retries: 1,
      }),
      store(9_724, 8_000, "losesRequests", "all"),
    ],
  ),
  "an end is written late, and the answer to its write is lost": plan(
    { seed: 60_295, perSecond: 5, aheadMs: [-26_333, 115] },
    [
      pay(5_362, "order-0.1", { turns: ["pendingThenFail", "payThenHtml"], retries: 1 }),
      store(5_369, 14_000, "stalls", "all"),
      pause(5_375, 8_000),
      store(5_734, 14_000, "losesAnswers"),
      look(5_991, "order-0", 1),
    ],
  ),
  "a gateway stands still until the deadline of a call that waits": plan({}, [
    pay(1_000, "order-0.1", { turns: ["payLate"], deadlineMs: 12_000, waits: "ACTION" }),
    pause(3_800, 60_000),
  ]),
  "a payment is cancelled, the next one is on its way, and a third is asked for": plan({}, [
    pay(1_000, "order-0.1"),
    { do: "elsewhere", atMs: 2_000, externalId: "order-0", what: "cancel" },
    pay(6_000, "order-0.2", { turns: ["payOnceDenied"] }),
    pay(14_000, "order-0.3", { turns: ["declineAsData"] }),
  ]),
  "a request arrives when the service has denied twice to know it": plan({}, [
    pay(1_000, "order-0.1", { turns: ["payOnceDenied"] }),
    { do: "service", atMs: 4_000, forMs: 14_000, trouble: "refuses" },
  ]),
  "a payment failed, and the answer to the next call, which waits, is lost": plan({}, [
    pay(1_000, "order-0.1", { turns: ["declineAsData"] }),
    pay(3_000, "order-0.2", { turns: ["payOnceDenied"], deadlineMs: 8_000, waits: "SETTLED" }),
  ]),
  "a payment is made while watches of it begin, whose edges write at once": plan(
    { seed: 7, replicas: 2 },
    [
      pay(1_000, "order-0.1"),
      ...many(24, (n) =>
        watch(1_002 + n, `w-${n}`, { externalId: "order-0", replica: n % 2, pushes: 1 }),
      ),
    ],
  ),
  "a payment is made while streams begin": plan({ replicas: 2 }, [
    pay(1_000, "order-0.1"),
    ...many(12, (n) => watch(1_004 + n, `all-${n}`, { replica: 1 })),
  ]),
  "a gateway stands still for a minute when a call is about to leave": plan(
    { seed: 2, replicas: 2 },
    [pay(1_000, "order-0.1"), pause(1_003, 60_000)],
  ),
  "a payout has no answer while the callback of the one before it is on its way": plan({}, [
    pay(1_000, "out-0.1", { callbacks: "late" }),
    store(1_004, 200, "losesRequests"),
    pay(1_500, "out-0.2", { turns: ["payThenSilence"], callbacks: "late" }),
    ...many(8, (n) => pay(4_200 + 400 * n, `out-0.${n + 3}`)),
  ]),
  "a watcher comes back beside another one when a failover has set the watermark back": plan(
    { seed: 2, perSecond: 5, replicas: 2, replication: { lagMs: 600, waits: true } },
    [
      watch(543, "all-1", { replica: 1, cutsAfterMs: [3_353, 397] }),
      watch(975, "all-2", { replica: 1 }),
      pay(1_212, "out-0.1", {
        replica: 1,
        turns: ["pay", "pay"],
        retries: 1,
        echoes: [again(0)],
        key: "key-out-0.1",
      }),
      pause(3_427, 2_500),
      failOver(4_263, 28),
    ],
  ),
  "a failover loses the newest takes of the budget": plan(
    { seed: 326, perSecond: 10, replication: { lagMs: 20, waits: true } },
    [{ do: "rush", atMs: 228, replica: 0, calls: 23 }, failOver(243, 15), pay(540, "order-0.1")],
  ),
  "a failover takes an event away that was stored and not held yet": plan(
    { replicas: 2, replication: { lagMs: 600, waits: true } },
    [
      // This payment makes the server load the scripts before the next one.
      pay(200, "order-9.1"),
      pay(5_000, "order-0.1"),
      watch(5_700, "w", { externalId: "order-0", replica: 1 }),
      failOver(5_900, 0),
    ],
  ),
  "a failover takes a state away that is about to be shown": plan(
    { replicas: 2, replication: { lagMs: 600, waits: true } },
    [
      pay(200, "order-9.1"),
      pay(5_000, "order-0.1"),
      watch(5_650, "at-5650", { externalId: "order-0", replica: 1 }),
      watch(5_700, "at-5700", { externalId: "order-0", replica: 1 }),
      failOver(5_900, 0),
    ],
  ),
  "a lost payout stays unclear until it is given up": plan(
    { seed: 201_503, perSecond: 5, replicas: 2 },
    [
      watch(2_357, "out-0-w1", { cutsAfterMs: [2_322] }),
      pay(2_395, "out-0.1", { replica: 1, turns: ["pending"], retries: 1, leavesAfterMs: 3 }),
      pay(2_519, "out-0.3", { turns: ["decline", "pay"], callbacks: "late" }),
      pay(2_907, "out-0.2", { replica: 1, turns: ["resetBefore"], callbacks: "never", retries: 1 }),
    ],
  ),
  "an answer comes while its call is told as unknown, and the disk is full": plan(
    { seed: 2_010_681, perSecond: 10 },
    [
      pay(59, "order-2.1", {
        turns: ["pending"],
        callbacks: "early",
        echoes: [again(0), again(3_077)],
        key: "key-order-2.1",
        held: true,
        deadlineMs: 4_000,
      }),
      pause(305, 8_000),
      pay(1_090, "order-1.1", {
        method: "CreateRecurrentPayment",
        turns: ["paySlowly", "payThenReset"],
        retries: 1,
        deadlineMs: 4_000,
        leavesAfterMs: 700,
      }),
      store(1_094, 8_000, "losesRequests", "all", 0.1),
      watch(1_460, "order-1-w1"),
      look(1_480, "order-2"),
      look(5_432, "order-2"),
      look(7_446, "order-1"),
    ],
  ),
  "a confirmation is answered as pending while somebody asks": plan({}, [
    pay(1_000, "order-0.1", { callbacks: "late", held: true }),
    pay(3_000, "order-0.c1", { turns: ["pending"] }),
    ...many(40, (n) => look(3_000 + n, "order-0")),
  ]),
  "a gateway dies, and its call reaches the store when all seems to be over": plan(
    { seed: 10_230_050, perSecond: 3, replicas: 2 },
    [
      watch(331, "all-2", { replica: 1 }),
      { do: "rush", atMs: 389, replica: 1, calls: 5 },
      watch(902, "all-1", { replica: 1 }),
      store(957, 2_500, "late", "all"),
      pay(1_062, "order-0.1", { callbacks: "late" }),
      { do: "kill", atMs: 1_162, forMs: 100, replica: 0 },
    ],
  ),
  "a hold is answered late while the store is away, before its payment is known": plan(
    { seed: 10_285_013, perSecond: 3 },
    [
      watch(46, "out-1-w2", { cutsAfterMs: [972] }),
      pay(109, "out-1.1", { turns: ["payLate", "payThenSilence"], callbacks: "twice", retries: 2 }),
      watch(174, "out-1-w1"),
      pay(203, "out-1.3", { turns: ["pendingThenFail"], callbacks: "early", retries: 1 }),
      store(294, 8_000, "losesRequests", 0, 0.4),
      pay(620, "order-2.1", { leavesAfterMs: 2_500, turns: ["pay"] }),
      pay(835, "order-0.1", {
        key: "key-order-0.1",
        held: true,
        deadlineMs: 4_000,
        turns: ["paySlowly"],
        echoes: [again(0)],
      }),
      look(938, "out-1"),
      look(1_113, "order-0"),
      pay(1_640, "out-1.2", {
        leavesAfterMs: 3,
        turns: ["pending"],
        callbacks: "early",
        retries: 1,
      }),
      watch(1_728, "all-2"),
      store(1_732, 8_000, "losesRequests", "all"),
    ],
  ),
  "answers come twice while payments go out one after another": plan(
    { seed: 2, perSecond: 1_000, answersTwice: true },
    many(60, (n) => pay(1_000 + 4 * n, `order-${n}`, { turns: n % 3 === 0 ? ["decline"] : [] })),
  ),
  "a caller leaves while a slow disk notes the call": plan({}, [
    pay(1_000, "order-0.1", { leavesAfterMs: 50 }),
    store(990, 200, "losesAnswers"),
  ]),
  "a gateway stands still while it begins a call, which is taken for lost meanwhile": plan(
    { seed: 3, perSecond: 3, replicas: 2, replication: { lagMs: 20, waits: true } },
    [pay(12_433, "out-0.1", { turns: ["pending"] }), failOver(12_438, -13), pause(12_447, 60_000)],
  ),
  "a confirmation is refused before the store could hear of the hold's answer": plan({ seed: 6 }, [
    pay(1_000, "order-0.1", { turns: ["paySlowly"], callbacks: "never", held: true }),
    pay(1_050, "order-0.c1", { turns: ["decline"], callbacks: "never" }),
    store(1_100, 4_000, "losesRequests"),
    look(4_200, "order-0"),
  ]),
  "a call is told as unknown just as it ends, and the disk takes neither word": plan(
    { seed: 20_143_013, perSecond: 3 },
    [
      watch(97, "order-1-w2", { cutsAfterMs: [2_569, 3_522, 3_565, 2_355] }),
      pay(414, "order-1.1", {
        key: "key-order-1.1",
        turns: ["declineAsData"],
        retries: 2,
        echoes: [again(7_846)],
      }),
      pause(416, 14_000),
      watch(537, "all-1"),
      watch(1_745, "order-0-w1"),
      look(2_404, "order-0"),
      look(3_209, "order-1"),
      watch(3_508, "order-1-w1"),
      pay(4_568, "order-0.1", { turns: ["ownErrorBefore"] }),
      store(4_601, 14_000, "losesRequests", "all", 0.4),
      look(6_731, "order-1"),
      look(7_723, "order-1"),
      look(7_735, "order-1"),
      look(9_528, "order-0"),
    ],
  ),
  "a call is told as unknown by a slow disk when it has ended": plan(
    { seed: 20_204_081, perSecond: 10 },
    [
      watch(235, "all-1", { cutsAfterMs: [1_498] }),
      pay(875, "order-2.2", { turns: ["paySlowly"], callbacks: "twice" }),
      store(1_009, 2_500, "stalls", "all", 0.1),
      pay(1_082, "order-2.1", { deadlineMs: 4_000, turns: ["paySlowly"], retries: 2 }),
      look(1_227, "order-2"),
      watch(1_254, "order-0-w2"),
      watch(1_260, "order-0-w1"),
      pay(1_262, "order-0.1", {
        key: "key-order-0.1",
        held: true,
        turns: ["payThenReset"],
        retries: 1,
        echoes: [again(69), again(5_848)],
      }),
      pay(1_609, "order-0.2", {
        key: "key-order-0.2",
        held: true,
        deadlineMs: 400,
        turns: ["pay"],
        retries: 2,
        echoes: [again(289)],
      }),
      store(1_771, 14_000, "losesAnswers", "all", 0.4),
      watch(2_107, "order-1-w2"),
      pay(2_307, "order-1.2", { deadlineMs: 50, turns: ["pay"], retries: 1 }),
      pay(3_046, "order-1.1", { turns: ["pay"], retries: 1 }),
      pay(3_118, "order-0.c1", {
        key: "key-order-0.c1",
        deadlineMs: 400,
        turns: ["payThenOwnError"],
        retries: 1,
        echoes: [again(1), again(8_639)],
      }),
      store(3_118, 14_000, "losesRequests", 0, 0.4),
      look(3_168, "order-2"),
      watch(3_992, "order-1-w1", { cutsAfterMs: [1_911, 1_980] }),
      pay(4_375, "order-1.3", { turns: ["silenceBefore"], retries: 2 }),
      look(4_537, "order-2"),
      look(5_027, "order-1"),
      look(7_810, "order-2"),
      look(8_553, "order-1"),
    ],
  ),
  "a call ends in time, and the store hears of it late, when its gateway has died": plan(
    { replicas: 2 },
    [
      pay(1_000, "order-0.1", { replica: 1, turns: ["tooMany"] }),
      store(1_003, 12_000, "stalls", 1),
      { do: "kill", atMs: 5_000, replica: 1, forMs: 12_000 },
    ],
  ),
  "the same on Redis, for a payout behind one that failed": plan(
    {
      seed: 31_005_696,
      perSecond: 10,
      replicas: 2,
      replication: { lagMs: 600, waits: true },
      aheadMs: [-17_872, 182],
    },
    [
      pay(2_260, "out-0.1", { turns: ["decline"], callbacks: "early", retries: 1 }),
      look(4_786, "out-0", 1),
      store(5_204, 14_000, "stalls", 1),
      { do: "kill", atMs: 9_075, replica: 1, forMs: 14_000 },
    ],
  ),
  "a gateway stands still through a failover, and a watcher of the new log comes to it": plan(
    { seed: 31_057_206, replicas: 3, replication: { lagMs: 600, waits: true } },
    [
      pause(194, 14_000, 1),
      failOver(327, -29),
      watch(1_985, "w0", { externalId: "out-0", cutsAfterMs: [1_261, 2_881, 2_773, 3_541] }),
      pay(2_393, "out-0.1", {
        replica: 1,
        turns: ["payThenHtml"],
        retries: 2,
        echoes: [again(1_950), again(0)],
        key: "key",
        deadlineMs: 4_000,
      }),
    ],
  ),
  "a confirmation turns out as not done, by a gateway whose wall clock is behind": plan(
    { seed: 31_070_453, replicas: 2, aheadMs: [8_273, -25_544] },
    [
      pay(1_359, "order-0.1", { replica: 1, turns: ["payLate"], callbacks: "late", held: true }),
      pay(2_631, "order-0.c1", {
        replica: 1,
        turns: ["silenceBefore", "pendingThenFail"],
        callbacks: "twice",
        retries: 2,
      }),
      store(3_250, 2_500, "losesAnswers", 1, 0.4),
      pay(3_973, "order-0.c2", {
        replica: 1,
        turns: ["payThenSilence", "pendingThenFail"],
        retries: 1,
        deadlineMs: 400,
      }),
    ],
  ),
  "a hold is shown by its gateway, which cannot ask whether another one confirms it": plan(
    { seed: 31_015_234, replicas: 2, replication: { lagMs: 20, waits: true } },
    [
      pay(1_764, "order-0.2", {
        turns: ["payThenSilence"],
        callbacks: "early",
        held: true,
        deadlineMs: 1_500,
      }),
      store(2_361, 2_500, "cuts", "all", 0.4),
      pay(4_455, "order-0.c1", { replica: 1, turns: ["payLate"], key: "key", deadlineMs: 1_500 }),
      look(4_820, "order-0"),
    ],
  ),
  "a call ends while the note that it is unknown waits behind it": plan(
    { seed: 10_496_371, perSecond: 5 },
    [
      pay(11_352, "order-0.2", { turns: ["decline"], callbacks: "early" }),
      store(11_354, 8_000, "losesRequests", "all"),
    ],
  ),
  "a payment is answered, the disk does not take the answer, and it is asked for": plan({}, [
    pay(1_000, "order-0.1", { retries: 1 }),
    store(1_002, 2_500, "cuts"),
    look(2_131, "order-0"),
  ]),
  "the store stands still while a call with a key and one without begin": plan({}, [
    store(996, 14_000, "stalls"),
    pay(1_313, "order-0.1", {
      turns: ["pendingThenFail"],
      echoes: [{ ...again(0), stays: true }],
      key: "key",
      leavesAfterMs: 1,
    }),
    pay(1_326, "order-0.2", { retries: 2, leavesAfterMs: 3, waits: "ACTION" }),
  ]),
  "the store is slow for calls of one payment that wait for each other": plan(
    { seed: 61_000_482, perSecond: 5 },
    [
      store(1_192, 14_000, "losesAnswers"),
      pay(1_935, "order-0.1", {
        method: "CreateRecurrentPayment",
        turns: ["paySlowly", "payThenSilence"],
        echoes: [{ ...again(0), stays: true }, again(210)],
        key: "key-1",
        deadlineMs: 4_000,
        leavesAfterMs: 30,
      }),
      pay(1_947, "order-0.2", {
        method: "CreateRecurrentPayment",
        turns: ["pendingThenFail"],
        retries: 2,
        echoes: [again(3_568)],
        key: "key-2",
      }),
      pause(4_068, 8_000),
    ],
  ),
  "the disk refuses one write and takes the next, while two payouts begin": plan({ seed: 6 }, [
    store(990, 20, "cuts", 0, 0.4),
    pay(1_000, "out-0.1", { turns: ["payThenSilence"], callbacks: "never" }),
    pay(1_000, "out-0.2", { turns: ["payThenSilence"], callbacks: "never" }),
  ]),
  "nothing reaches a replica that takes over": plan(
    { seed: 1, replication: { lagMs: 20, waits: true, replicas: 2 } },
    [
      { do: "burst", atMs: 500, callbacks: 1 },
      { do: "replica", atMs: 900, forMs: 4_000 },
      { do: "burst", atMs: 1_000, callbacks: 10 },
      failOver(2_900, 0),
    ],
  ),
  "a lost hold, of which one confirmation failed and the next one waits while the store is cut":
    plan({ seed: 30, perSecond: 3, replicas: 3 }, [
      pay(1_397, "order-0.1", {
        replica: 1,
        turns: ["payThenOwnError"],
        callbacks: "late",
        retries: 1,
        held: true,
      }),
      store(1_525, 2_500, "cuts", "all", 0.1),
      pay(3_013, "order-0.c2", {
        replica: 2,
        turns: ["decline", "pending"],
        retries: 1,
        waits: "ACTION",
      }),
      pay(3_628, "order-0.c1", { replica: 1, turns: ["pay"], callbacks: "twice" }),
    ]),
  "a look begins before a callback settles a call whose answer is not stored yet": plan(
    { seed: 527, perSecond: 3 },
    [
      store(1_320, 8_000, "losesRequests", 0, 0.4),
      pay(3_852, "order-0.1"),
      pay(3_853, "order-0.3", { key: "key", deadlineMs: 1_500, echoes: [again(20), again(0)] }),
      pause(4_629, 60_000),
      look(12_838, "order-0"),
    ],
  ),
  "a caller leaves the line at the budget, and then the power goes": plan(
    { seed: 1_145_687, perSecond: 5 },
    [
      pay(1_134, "out-2.1", {
        turns: ["payThenHtml"],
        deadlineMs: 12_000,
        retries: 1,
        waits: "ACTION",
      }),
      { do: "rush", atMs: 1_483, replica: 0, calls: 13 },
      pay(1_697, "order-1.2h", { turns: ["decline"], callbacks: "never", held: true }),
      pay(1_908, "order-1.3", {
        turns: ["paySlowly"],
        callbacks: "reversed",
        leavesAfterMs: 30,
      }),
      { do: "powerOff", atMs: 1_964, forMs: 14_000, replica: 0 },
    ],
  ),
  "a call is looked up, and the store takes no writes for long": plan(
    { seed: 91_116_359, perSecond: 5 },
    [
      pay(6_587, "order-0.1", {
        method: "CreateRecurrentPayment",
        turns: ["ownErrorBefore", "payLate"],
        retries: 1,
      }),
      store(8_773, 14_000, "cuts"),
    ],
  ),
  "a key is sent again to another gateway, and replicas lag": plan(
    {
      ...{ seed: 72_000_698, perSecond: 10, replicas: 2, aheadMs: [-438, 60, 101] },
      replication: { lagMs: 600, waits: true, replicas: 2 },
    },
    [
      pay(2_513, "order-0.1", {
        ...{ replica: 1, key: "key-order-0.1", callbacks: "never" },
        echoes: [again(2, 1)],
      }),
    ],
  ),
  "a payment is taken back while another call for it waits at the budget": plan(
    { seed: 71_028_796, perSecond: 10, answersTwice: true },
    [
      pay(654, "order-0.1", {
        ...{ key: "key-order-0.1", held: true, deadlineMs: 50, retries: 1 },
        turns: ["payThenOwnError", "resetBefore"],
        echoes: [again(3_684), again(183)],
      }),
      pay(792, "order-0.2", { held: true, turns: ["tooMany"], callbacks: "reversed", retries: 1 }),
      pay(836, "order-0.3", {
        ...{ held: true, callbacks: "late", retries: 2 },
        turns: ["payThenReset", "paySlowly"],
      }),
      pay(1_305, "order-0.c1", {
        turns: ["payOnceDenied", "pendingThenFail"],
        ...{ callbacks: "late", retries: 1 },
      }),
      { do: "elsewhere", atMs: 1_532, externalId: "order-0", what: "cancel" },
    ],
  ),
  "a call that a standing payment settled fails after that one was cancelled": plan(
    { seed: 73_142_713, replicas: 2 },
    [
      pay(6_834, "order-0.1", {
        ...{ replica: 1, held: true, callbacks: "twice" },
        turns: ["payThenOwnError", "payThenHtml"],
      }),
      watch(6_848, "order-0-w2", { replica: 1 }),
      pay(7_030, "order-0.3", { held: true, turns: ["payLate"], callbacks: "late", retries: 1 }),
      pay(9_292, "order-0.c1", { replica: 1, turns: ["resetBefore", "resetBefore"] }),
      { do: "elsewhere", atMs: 9_745, externalId: "order-0", what: "cancel" },
      pay(9_961, "order-0.2", {
        ...{ replica: 1, held: true, turns: ["payLate"], callbacks: "late", retries: 2 },
      }),
    ],
  ),
  "a call ends while one for the same payout reads late that it is open": plan(
    { seed: 85_025_320, perSecond: 3 },
    [
      { do: "rush", atMs: 1_985, replica: 0, calls: 7 },
      watch(4_603, "order-1-w1", { cutsAfterMs: [1_286, 671, 3_124, 1_367] }),
      pay(4_653, "order-1.1", {
        ...{ method: "CreateRecurrentPayment", key: "key-order-1.1", leavesAfterMs: 2_500 },
        ...{ turns: ["pending", "payLate"], retries: 2 },
        echoes: [again(0), again(5_489)],
      }),
      store(5_470, 8_000, "late", "all", 0.4),
      look(6_222, "order-1"),
      look(6_648, "out-0"),
      watch(7_009, "order-1-w2", { untilFinal: true, pushes: 0.5 }),
      pay(7_154, "out-2.1", { deadlineMs: 50, turns: ["payThenSilence"] }),
      pay(7_484, "out-2.3", {
        ...{ turns: ["paySlowly", "pay"], callbacks: "reversed", retries: 1 },
      }),
      watch(8_227, "out-2-w1"),
      pay(10_280, "out-0.2", { turns: ["pay"], callbacks: "twice", retries: 2 }),
      pay(10_285, "out-0.1", {
        ...{ key: "key-out-0.1", turns: ["payThenHalf", "payThenSilence"], retries: 1 },
        echoes: [{ ...again(0), stays: true }, again(235)],
        leavesAfterMs: 1,
      }),
      look(10_398, "order-1"),
      pay(10_521, "out-2.2", { deadlineMs: 50, turns: ["payThenReset", "pending"], retries: 1 }),
      store(10_527, 14_000, "late"),
      look(11_287, "out-0"),
      look(12_061, "out-0"),
      look(12_891, "out-0"),
      look(16_495, "out-0"),
    ],
  ),
} satisfies Readonly<Record<string, Plan>>;

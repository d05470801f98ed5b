import type { PayStep, Plan, Step, StoreTrouble } from "./plan.ts";

const pay: PayStep = {
  ...{ do: "pay", atMs: 1_000, id: "order-0.1", method: "CreatePayment", externalId: "order-0" },
  ...{ replica: 0, turns: [], callbacks: "soon", retries: 0, echoes: [] },
};
const payout = { ...pay, method: "RequestPayout", externalId: "out-0" } as const;

function plan(steps: readonly Step[], replicas = 1): Plan {
  return { seed: 1, perSecond: 50, replicas, steps };
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

/** Shrunk histories that once broke a promise, or would. The tests run them each time. */
export const kept = {
  "a payment is answered, and the store does not hear of it": plan([
    { ...pay, turns: ["pending"], callbacks: "late" },
    store(1_004, 200, "losesRequests"),
    { do: "look", atMs: 2_500, externalId: "order-0", replica: 0 },
  ]),
  "a payout failed, the next one is on its way, and the store is silent": plan([
    { ...payout, id: "out-0.1", turns: ["decline"] },
    { ...payout, id: "out-0.2", atMs: 1_500, turns: ["payLate"] },
    store(3_510, 3_000, "losesAnswers"),
    { do: "look", atMs: 3_520, externalId: "out-0", replica: 0 },
  ]),
  "a hold is paid, and the store hears of it by the callback alone": plan([
    { ...pay, held: true },
    store(1_002, 8_000, "losesRequests"),
  ]),
  "a lost call turns out as not done while a watch begins": plan([
    { ...pay, turns: ["silenceBefore"] },
    { do: "watch", atMs: 31_314, id: "w0", externalId: "order-0", replica: 0, cutsAfterMs: [] },
  ]),
  "a key is answered again by a gateway whose store is silent": plan(
    [
      { ...pay, key: "key", deadlineMs: 400, echoes: [{ afterMs: 2_000, replica: 1 }] },
      store(3_006, 8_000, "losesAnswers", 1),
    ],
    2,
  ),
  "a key's answer does not reach the store at once": plan([
    { ...pay, key: "key" },
    store(1_012, 200, "losesRequests"),
  ]),
  "a key's answer reaches the store when its lease is over": {
    ...{ seed: 33446, perSecond: 5, replicas: 3 },
    steps: [
      {
        ...{ ...pay, atMs: 478, id: "order-1.1", externalId: "order-1", key: "key-order-1.1" },
        ...{ deadlineMs: 1_500, callbacks: "twice", echoes: [{ afterMs: 7_463, replica: 1 }] },
      },
      { do: "store", atMs: 482, forMs: 14_000, replica: "all", trouble: "losesRequests", share: 1 },
    ],
  },
  "a call that never left is freed late": plan(
    [
      { ...payout, id: "out-0.1", replica: 1 },
      store(1_000, 100, "losesAnswers", 1),
      { do: "pause", atMs: 1_300, forMs: 14_000, replica: 1 },
      { ...payout, id: "out-0.2", atMs: 20_000, turns: ["decline"] },
    ],
    2,
  ),
  "a call that never left is freed when its own gateway is about to look it up": {
    ...{ seed: 50937, perSecond: 50, replicas: 1 },
    steps: [
      {
        ...{ ...pay, atMs: 8_993, method: "CreateRecurrentPayment", key: "key-order-0.1" },
        ...{ turns: ["decline"], callbacks: "never" },
        echoes: [
          { afterMs: 1, replica: 0 },
          { afterMs: 79, replica: 0 },
        ],
      },
      {
        ...{ ...pay, atMs: 9_322, id: "order-0.2", method: "CreateRecurrentPayment" },
        ...{ turns: ["tooMany"], callbacks: "reversed", retries: 1 },
      },
      {
        do: "store",
        atMs: 9_724,
        forMs: 8_000,
        replica: "all",
        trouble: "losesRequests",
        share: 1,
      },
    ],
  },
  "an end is written late, and the answer to its write is lost": {
    ...{ seed: 60295, perSecond: 5, replicas: 1, aheadMs: [-26_333, 115] },
    steps: [
      {
        ...{ ...pay, atMs: 5_362, turns: ["pendingThenFail", "payThenHtml"], retries: 1 },
      },
      { do: "store", atMs: 5_369, forMs: 14_000, replica: "all", trouble: "stalls", share: 1 },
      { do: "pause", atMs: 5_375, forMs: 8_000, replica: 0 },
      { do: "store", atMs: 5_734, forMs: 14_000, replica: 0, trouble: "losesAnswers", share: 1 },
      { do: "look", atMs: 5_991, externalId: "order-0", replica: 1 },
    ],
  },
  "a gateway stands still until the deadline of a call that waits": plan([
    {
      ...{ ...pay, deadlineMs: 12_000, waits: "ACTION", turns: ["payLate"] },
    },
    { do: "pause", atMs: 3_800, forMs: 60_000, replica: 0 },
  ]),
  "a payment is cancelled, the next one is on its way, and a third is asked for": plan([
    { ...pay, id: "order-0.1" },
    { do: "elsewhere", atMs: 2_000, externalId: "order-0", what: "cancel" },
    { ...pay, id: "order-0.2", atMs: 6_000, turns: ["payOnceDenied"] },
    { ...pay, id: "order-0.3", atMs: 14_000, turns: ["declineAsData"] },
  ]),
  "a request arrives when the service has denied twice to know it": plan([
    { ...pay, turns: ["payOnceDenied"] },
    { do: "service", atMs: 4_000, forMs: 14_000, trouble: "refuses" },
  ]),
  "a payment failed, and the answer to the next call, which waits, is lost": plan([
    { ...pay, id: "order-0.1", turns: ["declineAsData"] },
    {
      ...pay,
      id: "order-0.2",
      atMs: 3_000,
      turns: ["payOnceDenied"],
      deadlineMs: 8_000,
      waits: "SETTLED",
    },
  ]),
  "a payment is made while watches of it begin, whose edges write at once": plan(
    [
      pay,
      ...Array.from({ length: 24 }, (_, n) => ({
        ...{ do: "watch" as const, atMs: 1_002 + n, id: `w-${n}`, externalId: "order-0" },
        ...{ replica: n % 2, cutsAfterMs: [], pushes: 1 },
      })),
    ],
    2,
  ),
  "a payment is made while streams begin": plan(
    [
      pay,
      ...Array.from({ length: 12 }, (_, n) => ({
        ...{ do: "watch" as const, atMs: 1_004 + n, id: `all-${n}`, replica: 1 },
        cutsAfterMs: [],
      })),
    ],
    2,
  ),
  "a gateway stands still for a minute when a call is about to leave": plan(
    [pay, { do: "pause", atMs: 1_003, forMs: 60_000, replica: 0 }],
    2,
  ),
  "a payout has no answer while the callback of the one before it is on its way": plan([
    { ...payout, id: "out-0.1", callbacks: "late" },
    store(1_004, 200, "losesRequests"),
    { ...payout, id: "out-0.2", atMs: 1_500, turns: ["payThenSilence"], callbacks: "late" },
    ...Array.from({ length: 8 }, (_, n) => ({
      ...{ ...payout, id: `out-0.${n + 3}`, atMs: 4_200 + 400 * n },
    })),
  ]),
  "a watcher comes back beside another one when a failover has set the watermark back": {
    ...{ seed: 1_068, perSecond: 5, replicas: 2, replication: { lagMs: 600, waits: true } },
    steps: [
      ...[
        { do: "watch" as const, atMs: 543, id: "all-1", replica: 1, cutsAfterMs: [3_353, 397] },
        { do: "watch" as const, atMs: 975, id: "all-2", replica: 1, cutsAfterMs: [] },
      ],
      {
        ...{ ...payout, atMs: 1_212, id: "out-0.1", replica: 1, key: "key-out-0.1" },
        ...{ turns: ["pay", "pay"], retries: 1, echoes: [{ afterMs: 0, replica: 0 }] },
      },
      { do: "pause", atMs: 3_427, forMs: 2_500, replica: 0 },
      { do: "failOver", atMs: 4_263, aheadMs: 28 },
    ],
  },
  "a failover loses the newest takes of the budget": {
    ...{ seed: 326, perSecond: 10, replicas: 1, replication: { lagMs: 20, waits: true } },
    steps: [
      { do: "rush", atMs: 228, replica: 0, calls: 23 },
      { do: "failOver", atMs: 243, aheadMs: 15 },
      { ...pay, atMs: 540 },
    ],
  },
  "a failover takes an event away that was stored and not held yet": {
    ...{ seed: 1, perSecond: 50, replicas: 2, replication: { lagMs: 600, waits: true } },
    steps: [
      // This payment makes the server load the scripts before the next one.
      { ...pay, atMs: 200, id: "order-9.1", externalId: "order-9" },
      { ...pay, atMs: 5_000 },
      {
        ...{ do: "watch", atMs: 5_700, id: "w", externalId: "order-0" },
        ...{ replica: 1, cutsAfterMs: [] },
      },
      { do: "failOver", atMs: 5_900, aheadMs: 0 },
    ],
  },
  "a failover takes a state away that is about to be shown": {
    ...{ seed: 1, perSecond: 50, replicas: 2, replication: { lagMs: 600, waits: true } },
    steps: [
      { ...pay, atMs: 200, id: "order-9.1", externalId: "order-9" },
      { ...pay, atMs: 5_000 },
      ...[5_650, 5_700].map((atMs) => ({
        ...{ do: "watch" as const, atMs, id: `at-${atMs}`, externalId: "order-0" },
        ...{ replica: 1, cutsAfterMs: [] },
      })),
      { do: "failOver", atMs: 5_900, aheadMs: 0 },
    ],
  },
  "a lost payout stays unclear until it is given up": {
    ...{ seed: 201503, perSecond: 5, replicas: 2 },
    steps: [
      {
        do: "watch",
        atMs: 2_357,
        id: "out-0-w1",
        externalId: "out-0",
        replica: 0,
        cutsAfterMs: [2_322],
      },
      {
        ...payout,
        atMs: 2_395,
        id: "out-0.1",
        replica: 1,
        leavesAfterMs: 3,
        turns: ["pending"],
        retries: 1,
      },
      { ...payout, atMs: 2_519, id: "out-0.3", turns: ["decline", "pay"], callbacks: "late" },
      {
        ...payout,
        atMs: 2_907,
        id: "out-0.2",
        replica: 1,
        turns: ["resetBefore"],
        callbacks: "never",
        retries: 1,
      },
    ],
  },
  "an answer comes while its call is told as unknown, and the disk is full": {
    ...{ seed: 2_010_681, perSecond: 10, replicas: 1 },
    steps: [
      {
        ...{ ...pay, atMs: 59, id: "order-2.1", externalId: "order-2", key: "key-order-2.1" },
        ...{ held: true, deadlineMs: 4_000, turns: ["pending"], callbacks: "early" },
        echoes: [
          { afterMs: 0, replica: 0 },
          { afterMs: 3_077, replica: 0 },
        ],
      },
      { do: "pause", atMs: 305, forMs: 8_000, replica: 0 },
      {
        ...{ ...pay, atMs: 1_090, id: "order-1.1", externalId: "order-1", deadlineMs: 4_000 },
        ...{ method: "CreateRecurrentPayment", leavesAfterMs: 700, retries: 1 },
        turns: ["paySlowly", "payThenReset"],
      },
      {
        ...{ do: "store", atMs: 1_094, forMs: 8_000, replica: "all" },
        ...{ trouble: "losesRequests", share: 0.1 },
      },
      {
        do: "watch",
        atMs: 1_460,
        id: "order-1-w1",
        externalId: "order-1",
        replica: 0,
        cutsAfterMs: [],
      },
      { do: "look", atMs: 1_480, externalId: "order-2", replica: 0 },
      { do: "look", atMs: 5_432, externalId: "order-2", replica: 0 },
      { do: "look", atMs: 7_446, externalId: "order-1", replica: 0 },
    ],
  },
  "a confirmation is answered as pending while somebody asks": plan([
    { ...pay, held: true, callbacks: "late" },
    {
      ...{ ...pay, atMs: 3_000, id: "order-0.c1", method: "ConfirmPayment" },
      turns: ["pending"],
    },
    ...Array.from({ length: 40 }, (_, n): Step => {
      return { do: "look", atMs: 3_000 + n, externalId: "order-0", replica: 0 };
    }),
  ]),
  "a gateway dies, and its call reaches the store when all seems to be over": {
    ...{ seed: 10_230_050, perSecond: 3, replicas: 2 },
    steps: [
      { do: "watch", atMs: 331, id: "all-2", replica: 1, cutsAfterMs: [] },
      { do: "rush", atMs: 389, replica: 1, calls: 5 },
      { do: "watch", atMs: 902, id: "all-1", replica: 1, cutsAfterMs: [] },
      { do: "store", atMs: 957, forMs: 2_500, trouble: "late", replica: "all", share: 1 },
      { ...pay, atMs: 1_062, callbacks: "late" },
      { do: "kill", atMs: 1_162, forMs: 100, replica: 0 },
    ],
  },
  "a hold is answered late while the store is away, before its payment is known": {
    ...{ seed: 10_285_013, perSecond: 3, replicas: 1 },
    steps: [
      {
        do: "watch",
        atMs: 46,
        id: "out-1-w2",
        externalId: "out-1",
        replica: 0,
        cutsAfterMs: [972],
      },
      {
        do: "pay",
        atMs: 109,
        id: "out-1.1",
        method: "RequestPayout",
        externalId: "out-1",
        replica: 0,
        turns: ["payLate", "payThenSilence"],
        callbacks: "twice",
        retries: 2,
        echoes: [],
      },
      { do: "watch", atMs: 174, id: "out-1-w1", externalId: "out-1", replica: 0, cutsAfterMs: [] },
      {
        do: "pay",
        atMs: 203,
        id: "out-1.3",
        method: "RequestPayout",
        externalId: "out-1",
        replica: 0,
        turns: ["pendingThenFail"],
        callbacks: "early",
        retries: 1,
        echoes: [],
      },
      { do: "store", atMs: 294, forMs: 8000, replica: 0, trouble: "losesRequests", share: 0.4 },
      {
        do: "pay",
        atMs: 620,
        id: "order-2.1",
        method: "CreatePayment",
        externalId: "order-2",
        replica: 0,
        leavesAfterMs: 2500,
        turns: ["pay"],
        callbacks: "soon",
        retries: 0,
        echoes: [],
      },
      {
        do: "pay",
        atMs: 835,
        id: "order-0.1",
        method: "CreatePayment",
        externalId: "order-0",
        replica: 0,
        key: "key-order-0.1",
        held: true,
        deadlineMs: 4000,
        turns: ["paySlowly"],
        callbacks: "soon",
        retries: 0,
        echoes: [{ afterMs: 0, replica: 0 }],
      },
      { do: "look", atMs: 938, externalId: "out-1", replica: 0 },
      { do: "look", atMs: 1113, externalId: "order-0", replica: 0 },
      {
        do: "pay",
        atMs: 1640,
        id: "out-1.2",
        method: "RequestPayout",
        externalId: "out-1",
        replica: 0,
        leavesAfterMs: 3,
        turns: ["pending"],
        callbacks: "early",
        retries: 1,
        echoes: [],
      },
      { do: "watch", atMs: 1728, id: "all-2", replica: 0, cutsAfterMs: [] },
      { do: "store", atMs: 1732, forMs: 8000, replica: "all", trouble: "losesRequests", share: 1 },
    ],
  },
  "answers come twice while payments go out one after another": {
    ...{ seed: 1, perSecond: 1_000, replicas: 1, answersTwice: true },
    steps: Array.from({ length: 60 }, (_, n): Step => {
      const [externalId, atMs] = [`order-${n}`, 1_000 + 4 * n];
      return { ...pay, atMs, externalId, id: externalId, turns: n % 3 === 0 ? ["decline"] : [] };
    }),
  },
  "a caller leaves while a slow disk notes the call": plan([
    { ...pay, leavesAfterMs: 50 },
    store(990, 200, "losesAnswers"),
  ]),
  "a gateway stands still while it begins a call, which is taken for lost meanwhile": {
    ...{ seed: 3, perSecond: 3, replicas: 2, replication: { lagMs: 20, waits: true } },
    steps: [
      { ...payout, atMs: 12_433, id: "out-0.1", turns: ["pending"] },
      { do: "failOver", atMs: 12_438, aheadMs: -13 },
      { do: "pause", atMs: 12_447, forMs: 60_000, replica: 0 },
    ],
  },
  "a confirmation is refused before the store could hear of the hold's answer": {
    ...plan([
      { ...pay, held: true, turns: ["paySlowly"], callbacks: "never" },
      {
        ...{ ...pay, atMs: 1_050, id: "order-0.c1", method: "ConfirmPayment" },
        ...{ turns: ["decline"], callbacks: "never" },
      },
      store(1_100, 4_000, "losesRequests"),
      { do: "look", atMs: 4_200, externalId: "order-0", replica: 0 },
    ]),
    seed: 6,
  },
  "a call is told as unknown just as it ends, and the disk takes neither word": {
    seed: 20143013,
    replicas: 1,
    perSecond: 3,
    steps: [
      {
        do: "watch",
        atMs: 97,
        id: "order-1-w2",
        externalId: "order-1",
        replica: 0,
        cutsAfterMs: [2569, 3522, 3565, 2355],
      },
      {
        do: "pay",
        atMs: 414,
        id: "order-1.1",
        method: "CreatePayment",
        externalId: "order-1",
        replica: 0,
        key: "key-order-1.1",
        turns: ["declineAsData"],
        callbacks: "soon",
        retries: 2,
        echoes: [{ afterMs: 7846, replica: 0 }],
      },
      { do: "pause", atMs: 416, forMs: 14000, replica: 0 },
      { do: "watch", atMs: 537, id: "all-1", replica: 0, cutsAfterMs: [] },
      {
        do: "watch",
        atMs: 1745,
        id: "order-0-w1",
        externalId: "order-0",
        replica: 0,
        cutsAfterMs: [],
      },
      { do: "look", atMs: 2404, externalId: "order-0", replica: 0 },
      { do: "look", atMs: 3209, externalId: "order-1", replica: 0 },
      {
        do: "watch",
        atMs: 3508,
        id: "order-1-w1",
        externalId: "order-1",
        replica: 0,
        cutsAfterMs: [],
      },
      {
        do: "pay",
        atMs: 4568,
        id: "order-0.1",
        method: "CreatePayment",
        externalId: "order-0",
        replica: 0,
        turns: ["ownErrorBefore"],
        callbacks: "soon",
        retries: 0,
        echoes: [],
      },
      {
        do: "store",
        atMs: 4601,
        forMs: 14000,
        replica: "all",
        trouble: "losesRequests",
        share: 0.4,
      },
      { do: "look", atMs: 6731, externalId: "order-1", replica: 0 },
      { do: "look", atMs: 7723, externalId: "order-1", replica: 0 },
      { do: "look", atMs: 7735, externalId: "order-1", replica: 0 },
      { do: "look", atMs: 9528, externalId: "order-0", replica: 0 },
    ],
  },
  "a call is told as unknown by a slow disk when it has ended": {
    seed: 20204081,
    replicas: 1,
    perSecond: 10,
    steps: [
      { do: "watch", atMs: 235, id: "all-1", replica: 0, cutsAfterMs: [1498] },
      {
        do: "pay",
        atMs: 875,
        id: "order-2.2",
        method: "CreatePayment",
        externalId: "order-2",
        replica: 0,
        turns: ["paySlowly"],
        callbacks: "twice",
        retries: 0,
        echoes: [],
      },
      { do: "store", atMs: 1009, forMs: 2500, replica: "all", trouble: "stalls", share: 0.1 },
      {
        do: "pay",
        atMs: 1082,
        id: "order-2.1",
        method: "CreatePayment",
        externalId: "order-2",
        replica: 0,
        deadlineMs: 4000,
        turns: ["paySlowly"],
        callbacks: "soon",
        retries: 2,
        echoes: [],
      },
      { do: "look", atMs: 1227, externalId: "order-2", replica: 0 },
      {
        do: "watch",
        atMs: 1254,
        id: "order-0-w2",
        externalId: "order-0",
        replica: 0,
        cutsAfterMs: [],
      },
      {
        do: "watch",
        atMs: 1260,
        id: "order-0-w1",
        externalId: "order-0",
        replica: 0,
        cutsAfterMs: [],
      },
      {
        do: "pay",
        atMs: 1262,
        id: "order-0.1",
        method: "CreatePayment",
        externalId: "order-0",
        replica: 0,
        key: "key-order-0.1",
        held: true,
        turns: ["payThenReset"],
        callbacks: "soon",
        retries: 1,
        echoes: [
          { afterMs: 69, replica: 0 },
          { afterMs: 5848, replica: 0 },
        ],
      },
      {
        do: "pay",
        atMs: 1609,
        id: "order-0.2",
        method: "CreatePayment",
        externalId: "order-0",
        replica: 0,
        key: "key-order-0.2",
        held: true,
        deadlineMs: 400,
        turns: ["pay"],
        callbacks: "soon",
        retries: 2,
        echoes: [{ afterMs: 289, replica: 0 }],
      },
      {
        do: "store",
        atMs: 1771,
        forMs: 14000,
        replica: "all",
        trouble: "losesAnswers",
        share: 0.4,
      },
      {
        do: "watch",
        atMs: 2107,
        id: "order-1-w2",
        externalId: "order-1",
        replica: 0,
        cutsAfterMs: [],
      },
      {
        do: "pay",
        atMs: 2307,
        id: "order-1.2",
        method: "CreatePayment",
        externalId: "order-1",
        replica: 0,
        deadlineMs: 50,
        turns: ["pay"],
        callbacks: "soon",
        retries: 1,
        echoes: [],
      },
      {
        do: "pay",
        atMs: 3046,
        id: "order-1.1",
        method: "CreatePayment",
        externalId: "order-1",
        replica: 0,
        turns: ["pay"],
        callbacks: "soon",
        retries: 1,
        echoes: [],
      },
      {
        do: "pay",
        atMs: 3118,
        id: "order-0.c1",
        method: "ConfirmPayment",
        externalId: "order-0",
        replica: 0,
        key: "key-order-0.c1",
        deadlineMs: 400,
        turns: ["payThenOwnError"],
        callbacks: "soon",
        retries: 1,
        echoes: [
          { afterMs: 1, replica: 0 },
          { afterMs: 8639, replica: 0 },
        ],
      },
      { do: "store", atMs: 3118, forMs: 14000, replica: 0, trouble: "losesRequests", share: 0.4 },
      { do: "look", atMs: 3168, externalId: "order-2", replica: 0 },
      {
        do: "watch",
        atMs: 3992,
        id: "order-1-w1",
        externalId: "order-1",
        replica: 0,
        cutsAfterMs: [1911, 1980],
      },
      {
        do: "pay",
        atMs: 4375,
        id: "order-1.3",
        method: "CreatePayment",
        externalId: "order-1",
        replica: 0,
        turns: ["silenceBefore"],
        callbacks: "soon",
        retries: 2,
        echoes: [],
      },
      { do: "look", atMs: 4537, externalId: "order-2", replica: 0 },
      { do: "look", atMs: 5027, externalId: "order-1", replica: 0 },
      { do: "look", atMs: 7810, externalId: "order-2", replica: 0 },
      { do: "look", atMs: 8553, externalId: "order-1", replica: 0 },
    ],
  },
  "a call ends in time, and the store hears of it late, when its gateway has died": plan(
    [
      { ...pay, replica: 1, turns: ["tooMany"] },
      store(1_003, 12_000, "stalls", 1),
      { do: "kill", atMs: 5_000, replica: 1, forMs: 12_000 },
    ],
    2,
  ),
  "the same on Redis, for a payout behind one that failed": {
    ...plan(
      [
        {
          ...payout,
          atMs: 2_260,
          id: "out-0.1",
          turns: ["decline"],
          callbacks: "early",
          retries: 1,
        },
        { do: "look", atMs: 4_786, externalId: "out-0", replica: 1 },
        store(5_204, 14_000, "stalls", 1),
        { do: "kill", atMs: 9_075, replica: 1, forMs: 14_000 },
      ],
      2,
    ),
    ...{ seed: 31_005_696, perSecond: 10, replication: { lagMs: 600, waits: true } },
    aheadMs: [-17_872, 182],
  },
  "a gateway stands still through a failover, and a watcher of the new log comes to it": {
    ...plan(
      [
        { do: "pause", atMs: 194, forMs: 14_000, replica: 1 },
        { do: "failOver", atMs: 327, aheadMs: -29 },
        {
          ...{ do: "watch", atMs: 1_985, id: "w0", externalId: "out-0", replica: 0 },
          cutsAfterMs: [1_261, 2_881, 2_773, 3_541],
        },
        {
          ...{ ...payout, atMs: 2_393, id: "out-0.1", replica: 1, key: "key", deadlineMs: 4_000 },
          ...{ turns: ["payThenHtml"], retries: 2 },
          echoes: [
            { afterMs: 1_950, replica: 0 },
            { afterMs: 0, replica: 0 },
          ],
        },
      ],
      3,
    ),
    ...{ seed: 31_057_206, replication: { lagMs: 600, waits: true } },
  },
  "a confirmation turns out as not done, by a gateway whose wall clock is behind": {
    ...plan(
      [
        { ...pay, atMs: 1_359, replica: 1, held: true, turns: ["payLate"], callbacks: "late" },
        {
          ...{ ...pay, atMs: 2_631, id: "order-0.c1", method: "ConfirmPayment", replica: 1 },
          ...{ turns: ["silenceBefore", "pendingThenFail"], callbacks: "twice", retries: 2 },
        },
        {
          ...{ do: "store", atMs: 3_250, forMs: 2_500, trouble: "losesAnswers", share: 0.4 },
          replica: 1,
        },
        {
          ...{ ...pay, atMs: 3_973, id: "order-0.c2", method: "ConfirmPayment", replica: 1 },
          ...{ deadlineMs: 400, turns: ["payThenSilence", "pendingThenFail"], retries: 1 },
        },
      ],
      2,
    ),
    ...{ seed: 31_070_453, aheadMs: [8_273, -25_544] },
  },
  "a hold is shown by its gateway, which cannot ask whether another one confirms it": {
    ...plan(
      [
        {
          ...{ ...pay, atMs: 1_764, id: "order-0.2", held: true, deadlineMs: 1_500 },
          ...{ turns: ["payThenSilence"], callbacks: "early" },
        },
        {
          ...{ do: "store", atMs: 2_361, forMs: 2_500, trouble: "cuts", share: 0.4 },
          replica: "all",
        },
        {
          ...{ ...pay, atMs: 4_455, id: "order-0.c1", method: "ConfirmPayment", replica: 1 },
          ...{ key: "key", deadlineMs: 1_500, turns: ["payLate"] },
        },
        { do: "look", atMs: 4_820, externalId: "order-0", replica: 0 },
      ],
      2,
    ),
    ...{ seed: 31_015_234, replication: { lagMs: 20, waits: true } },
  },
  "a call ends while the note that it is unknown waits behind it": {
    seed: 10496371,
    replicas: 1,
    perSecond: 5,
    steps: [
      {
        do: "pay",
        atMs: 11352,
        id: "order-0.2",
        method: "CreatePayment",
        externalId: "order-0",
        replica: 0,
        turns: ["decline"],
        callbacks: "early",
        retries: 0,
        echoes: [],
      },
      { do: "store", atMs: 11354, forMs: 8000, replica: "all", trouble: "losesRequests", share: 1 },
    ],
  },
  "a payment is answered, the disk does not take the answer, and it is asked for": plan([
    { ...pay, retries: 1 },
    store(1_002, 2_500, "cuts"),
    { do: "look", atMs: 2_131, externalId: "order-0", replica: 0 },
  ]),
  "the store stands still while a call with a key and one without begin": plan([
    store(996, 14_000, "stalls"),
    {
      ...{ ...pay, atMs: 1_313, key: "key", turns: ["pendingThenFail"], leavesAfterMs: 1 },
      echoes: [{ afterMs: 0, replica: 0, stays: true }],
    },
    { ...pay, id: "order-0.2", atMs: 1_326, leavesAfterMs: 3, retries: 2, waits: "ACTION" },
  ]),
  "the store is slow for calls of one payment that wait for each other": {
    ...plan([
      store(1_192, 14_000, "losesAnswers"),
      {
        ...{ ...pay, atMs: 1_935, method: "CreateRecurrentPayment", key: "key-1" },
        ...{ deadlineMs: 4_000, turns: ["paySlowly", "payThenSilence"], leavesAfterMs: 30 },
        echoes: [
          { afterMs: 0, replica: 0, stays: true },
          { afterMs: 210, replica: 0 },
        ],
      },
      {
        ...{ ...pay, atMs: 1_947, id: "order-0.2", method: "CreateRecurrentPayment", key: "key-2" },
        ...{ turns: ["pendingThenFail"], retries: 2, echoes: [{ afterMs: 3_568, replica: 0 }] },
      },
      { do: "pause", atMs: 4_068, forMs: 8_000, replica: 0 },
    ]),
    ...{ seed: 61_000_482, perSecond: 5 },
  },
  "the disk refuses one write and takes the next, while two payouts begin": {
    ...plan([
      store(990, 20, "cuts", 0, 0.4),
      { ...payout, id: "out-0.1", turns: ["payThenSilence"], callbacks: "never" },
      { ...payout, id: "out-0.2", turns: ["payThenSilence"], callbacks: "never" },
    ]),
    seed: 6,
  },
  "nothing reaches a replica that takes over": {
    ...plan([
      { do: "burst", atMs: 500, callbacks: 1 },
      { do: "replica", atMs: 900, forMs: 4_000 },
      { do: "burst", atMs: 1_000, callbacks: 10 },
      { do: "failOver", atMs: 2_900, aheadMs: 0 },
    ]),
    seed: 2,
    replication: { lagMs: 20, waits: true, replicas: 2 },
  },
  "a lost hold, of which one confirmation failed and the next one waits while the store is cut": {
    ...plan(
      [
        {
          ...{ ...pay, atMs: 1_397, held: true, turns: ["payThenOwnError"], callbacks: "late" },
          ...{ replica: 1, retries: 1 },
        },
        store(1_525, 2_500, "cuts", "all", 0.1),
        {
          ...{ ...pay, atMs: 3_013, id: "order-0.c2", method: "ConfirmPayment", replica: 2 },
          ...{ turns: ["decline", "pending"], retries: 1, waits: "ACTION" },
        },
        {
          ...{ ...pay, atMs: 3_628, id: "order-0.c1", method: "ConfirmPayment", replica: 1 },
          ...{ turns: ["pay"], callbacks: "twice" },
        },
      ],
      3,
    ),
    ...{ seed: 50_025_748, perSecond: 3 },
  },
  "a look begins before a callback settles a call whose answer is not stored yet": {
    ...{ seed: 90_055_954, perSecond: 3, replicas: 1 },
    steps: [
      store(1_320, 8_000, "losesRequests", 0, 0.4),
      { do: "watch", atMs: 2_330, id: "all-1", replica: 0, cutsAfterMs: [] },
      { ...pay, atMs: 3_852, held: true, deadlineMs: 400, turns: ["pay"], retries: 2 },
      {
        ...{ ...pay, atMs: 3_853, id: "order-0.3", key: "key-order-0.3", held: true },
        ...{ deadlineMs: 1_500, turns: ["paySlowly"] },
        echoes: [
          { afterMs: 20, replica: 0 },
          { afterMs: 0, replica: 0 },
        ],
      },
      {
        ...{ ...pay, atMs: 4_127, id: "order-0.2", held: true, turns: ["pay", "pending"] },
        ...{ callbacks: "late", retries: 2, waits: "ACTION" },
      },
      { do: "pause", atMs: 4_629, forMs: 60_000, replica: 0 },
      { do: "look", atMs: 6_763, externalId: "order-0", replica: 0 },
      {
        ...{ ...pay, atMs: 7_493, id: "order-0.c1", method: "ConfirmPayment" },
        ...{ turns: ["tooMany"], callbacks: "twice" },
      },
      { do: "look", atMs: 9_476, externalId: "order-0", replica: 0 },
      { do: "look", atMs: 12_838, externalId: "order-0", replica: 0 },
    ],
  },
  "a call is looked up, and the store takes no writes for long": {
    ...{ seed: 91_116_359, perSecond: 5, replicas: 1 },
    steps: [
      {
        ...{ ...pay, atMs: 6_587, method: "CreateRecurrentPayment" },
        ...{ turns: ["ownErrorBefore", "payLate"], retries: 1 },
      },
      store(8_773, 14_000, "cuts"),
    ],
  },
} satisfies Readonly<Record<string, Plan>>;

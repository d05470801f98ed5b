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
  "a payout failed, the next one is on its way, and the store is silent": plan({}, [
    pay(1_000, "out-0.1", { turns: ["decline"] }),
    pay(1_500, "out-0.2", { turns: ["payLate"] }),
    store(3_510, 3_000, "losesAnswers"),
    look(3_520, "out-0"),
  ]),
  "a key is answered again by a gateway whose store is silent": plan({ seed: 11, replicas: 2 }, [
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
  "a call that never left is freed late": plan({ replicas: 2 }, [
    pay(1_000, "out-0.1", { replica: 1 }),
    store(1_000, 100, "losesAnswers", 1),
    pause(1_300, 14_000, 1),
    pay(20_000, "out-0.2", { turns: ["decline"] }),
  ]),
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
  "a confirmation is answered as pending while somebody asks": plan({}, [
    pay(1_000, "order-0.1", { callbacks: "late", held: true }),
    pay(3_000, "order-0.c1", { turns: ["pending"] }),
    ...many(40, (n) => look(3_000 + n, "order-0")),
  ]),
  "answers come twice while payments go out one after another": plan(
    { seed: 2, perSecond: 1_000, answersTwice: true },
    many(60, (n) => pay(1_000 + 4 * n, `order-${n}`, { turns: n % 3 === 0 ? ["decline"] : [] })),
  ),
  "a confirmation is refused before the store could hear of the hold's answer": plan({ seed: 6 }, [
    pay(1_000, "order-0.1", { turns: ["paySlowly"], callbacks: "never", held: true }),
    pay(1_050, "order-0.c1", { turns: ["decline"], callbacks: "never" }),
    store(1_100, 4_000, "losesRequests"),
    look(4_200, "order-0"),
  ]),
  "a payment is answered, the disk does not take the answer, and it is asked for": plan({}, [
    pay(1_000, "order-0.1", { retries: 1 }),
    store(1_002, 2_500, "cuts"),
    look(2_131, "order-0"),
  ]),
  "the disk refuses one write and takes the next, while two payouts begin": plan({ seed: 30 }, [
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
    plan({ seed: 9, perSecond: 3, replicas: 3 }, [
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
} satisfies Readonly<Record<string, Plan>>;

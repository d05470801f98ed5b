import type { CallRecord, EndRecord, History, LoggedEvent } from "../../simulation/history.ts";

/** What clients, the payments service and the log said in one run, each payment under an id of its own. */
export interface Told {
  /** Answers are status codes. */
  readonly callbacks: readonly SentCallback[];
  readonly calls: readonly CallRecord[];
  /** What reached the service, in order. */
  readonly requests: readonly ServedRequest[];
  /** Everything that a watcher was shown. */
  readonly shown: readonly ShownEvent[];
  readonly resumed: History["resumed"];
  /** The log at the end, read from its beginning. */
  readonly log: readonly LoggedEvent[];
  /** Payments of which a caller did not know what became, and what the gateways said in the end. */
  readonly inDoubt: readonly Omit<EndRecord, "expected">[];
  /** Whether each gateway did everything again, once the fault was over. */
  readonly gateways: History["gateways"];
}

export interface SentCallback {
  readonly id: string;
  readonly answers: { readonly atMs: number; readonly status: number }[];
}

export interface ShownEvent extends LoggedEvent {
  readonly watcher: string;
  readonly atMs: number;
}

/** One request for a payment, as it reached the service. */
export interface ServedRequest {
  readonly externalId: string;
  readonly atMs: number;
  readonly charged: boolean;
}

/**
 * The history that the checks read. Who stood still, which budget held and which deadlines were given is
 * not known of a run in real time: the checks that need it find nothing to judge.
 */
export function historyOf(told: Told, endedMs = performance.now()): History {
  const { calls, requests, shown, log, inDoubt } = told;
  const charged = new Set(requests.flatMap((one) => (one.charged ? [one.externalId] : [])));
  const firstOf = new Map<string, string>();
  for (const { watcher, cursor } of shown) {
    const first = firstOf.get(watcher);
    if (first === undefined || cursor < first) firstOf.set(watcher, cursor);
  }
  return {
    ...{ endedMs, calls, log },
    posts: requests.map(({ externalId, atMs, charged }, at) => ({
      ...{ n: at + 1, request: externalId, externalId, method: "CreatePayment", charged },
      ...{ replica: "", sentMs: atMs, arrivedMs: atMs, tooMany: false },
      ...(charged && { paymentId: paymentIdOf(externalId) }),
    })),
    callbacks: told.callbacks,
    shown: shown.map((event) => ({ ...event, isFirst: false })),
    watchers: [...firstOf].map(([id, from]) => ({ id, from })),
    resumed: told.resumed,
    ends: inDoubt.map((end) => ({
      ...end,
      expected: charged.has(end.externalId) ? "PAID" : "FAILED",
    })),
    gateways: told.gateways,
    ...{ requests: [], looks: [], absences: [], limits: [], apart: [], lines: [] },
  };
}

/** Callbacks, those that were refused, payments, those in doubt, and what watchers were shown. */
export function countsOf({ callbacks, posts, ends, shown }: History): number[] {
  const refused = callbacks.flatMap(({ answers }) =>
    answers.filter(({ status }) => status !== 200),
  );
  return [callbacks, refused, posts, ends, shown].map((all) => all.length);
}

/** As the service names it. */
export function paymentIdOf(externalId: string): string {
  return `p-${externalId}`;
}

/** Numbers by a seed, the same ones each time: mulberry32. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

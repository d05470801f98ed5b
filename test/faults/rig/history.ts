import type { CallRecord, EndRecord, History, LoggedEvent } from "../../simulation/history.ts";

/**
 * What clients, the payments service and the log recorded in one run, in which each payment has an
 * external_id of its own.
 */
export interface Told {
  /** Answers are status codes. */
  readonly callbacks: readonly SentCallback[];
  readonly calls: readonly CallRecord[];
  /** Requests that reached the service, in order. */
  readonly requests: readonly ServedRequest[];
  /** All events that watchers received. */
  readonly shown: readonly ShownEvent[];
  readonly resumed: History["resumed"];
  /** The log at the end, read from its beginning. */
  readonly log: readonly LoggedEvent[];
  /** Payments whose outcome was unknown to a caller, and what the gateways reported in the end. */
  readonly inDoubt: readonly Omit<EndRecord, "expected">[];
  /** Whether each gateway served everything again once the fault was over. */
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
 * Builds the history that the checks read. A run in real time does not record blocked processes,
 * budgets or deadlines: the checks that need them have nothing to judge.
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
    // Nothing is expected to succeed at once while faults are injected.
    ...{ troubles: [{ fromMs: 0, toMs: Infinity }], elsewhere: [], misread: [] },
    ...{ requests: [], looks: [], absences: [], limits: [], apart: [], lines: [] },
  };
}

/** Counts callbacks, their refusals, payment requests, payments in doubt and events shown. */
export function countsOf({ callbacks, posts, ends, shown }: History): number[] {
  const refused = callbacks.flatMap(({ answers }) =>
    answers.filter(({ status }) => status !== 200),
  );
  return [callbacks, refused, posts, ends, shown].map((all) => all.length);
}

/** The payment_id that the service assigns. */
export function paymentIdOf(externalId: string): string {
  return `p-${externalId}`;
}

import type { MoneyUpstream } from "../../gateway/money-upstream.ts";
import type { EndRecord, History } from "../../simulation/history.ts";
import { createRecorder } from "../../simulation/recorder.ts";

/**
 * What clients, the payments service and the log recorded in one run, in which each payment has an
 * external_id of its own.
 */
export interface Told
  extends Pick<History, "callbacks" | "calls" | "shown" | "resumed" | "log" | "gateways"> {
  /** Requests that reached the service, in order. */
  readonly requests: MoneyUpstream["requests"];
  /** Payments whose outcome was unknown to a caller, and what the gateways reported in the end. */
  readonly inDoubt: readonly Omit<EndRecord, "expected">[];
}

/**
 * Builds the history that the checks read. A run in real time does not record blocked processes,
 * budgets or deadlines: the checks that need them have nothing to judge.
 */
export function historyOf({ requests, inDoubt, ...told }: Told): History {
  const charged = new Set(requests.map(({ externalId }) => externalId));
  const shownTo = Map.groupBy(told.shown, ({ watcher }) => watcher);
  const ends = inDoubt.map((end) => ({
    ...end,
    expected: charged.has(end.externalId) ? "PAID" : "FAILED",
  }));
  return {
    ...createRecorder(() => performance.now()).history({ ...told, ends }),
    posts: requests.map(({ externalId, atMs }, at) => ({
      ...{ n: at + 1, request: externalId, externalId, method: "CreatePayment", charged: true },
      ...{ replica: "", sentMs: atMs, arrivedMs: atMs, tooMany: false },
      paymentId: paymentIdOf(externalId),
    })),
    watchers: [...shownTo].map(([id, shown]) => {
      const [from = ""] = shown.map(({ cursor }) => cursor).toSorted();
      return { id, from };
    }),
    // Nothing is expected to succeed at once while faults are injected.
    troubles: [{ fromMs: 0, toMs: Infinity }],
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

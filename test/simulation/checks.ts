import type { CallRecord, History, PostRecord, ShownRecord } from "./history.ts";

/**
 * What must never be in a history, by name. Each check tells what it found; nothing if all is well. They
 * know what was said, and nothing of the code that said it.
 */
export const checks: Readonly<Record<string, (history: History) => string[]>> = {
  "sent while another is open": ({ posts }) =>
    posts.flatMap((post) =>
      posts
        .filter(
          (other) =>
            other.charged &&
            other.method === post.method &&
            other.externalId === post.externalId &&
            other.sentMs < post.sentMs &&
            post.sentMs < (other.knownMs ?? Infinity),
        )
        .map((other) => `${nameOf(post)} left while ${nameOf(other)} had no answer`),
    ),

  "key sent twice": ({ posts, calls }) => {
    const keyed = new Set(calls.flatMap(({ key, request }) => (key ? [request] : [])));
    return [...groupsOf(posts, ({ request }) => request)]
      .filter(([request]) => keyed.has(request))
      .map(([, all]) => all.filter(({ tooMany }) => !tooMany))
      .filter(({ length }) => length > 1)
      .map((all) => all.map(nameOf).join(", "));
  },

  "charged, told as failed": ({ posts, calls }) =>
    posts
      .filter(({ charged }) => charged)
      .flatMap((post) => {
        const all = calls.filter(({ request }) => request === post.request);
        // Where nobody was told otherwise, it does not matter for which of them it was sent.
        const denied = all.every(isDenied)
          ? all.slice(-1)
          : calls.filter((call) => isDenied(call) && isOf(post, call, calls));
        return denied.map(({ id, error, outcome }) => `${nameOf(post)}: ${id} ${error ?? outcome}`);
      }),

  "charged, shown as failed": ({ posts, looks }) =>
    looks.flatMap(({ externalId, askedMs, atMs, state }) =>
      posts
        .filter(
          (post) =>
            post.charged &&
            post.externalId === externalId &&
            post.sentMs < askedMs &&
            isDenial(post, state, atMs),
        )
        .map((post) => `${nameOf(post)}: asked at ${askedMs.toFixed(1)}, told ${state}`),
    ),

  "charged, told as not done": ({ posts, calls, log }) =>
    posts
      .filter(({ charged }) => charged)
      .flatMap((post) => {
        const own = calls.find(({ id }) => id === post.call);
        const isAlone = (storedMs: number) =>
          calls.every(
            ({ id, externalId, beganMs }) =>
              id === post.call || externalId !== post.externalId || beganMs > storedMs,
          );
        return (
          log
            .filter(
              ({ externalId, callOutcome }) =>
                externalId === post.externalId && callOutcome === "NOT_DONE",
            )
            // Of several calls it is not told which one it is about.
            .filter(({ storedMs }) => isAlone(storedMs))
            .filter(({ storedMs }) => own && own.beganMs < storedMs && storedMs < post.arrivedMs)
            .map(({ storedMs }) => `${nameOf(post)}: not done at ${storedMs}`)
        );
      }),

  "told as paid, not charged": ({ posts, calls }) => {
    const charged = new Set(posts.filter((post) => post.charged).map(({ paymentId }) => paymentId));
    return calls
      .filter(({ outcome, paymentId }) => outcome === "paid" && !charged.has(paymentId))
      .map(({ id, paymentId }) => `${id}: ${paymentId}`);
  },

  "told of another payment": ({ posts, calls }) =>
    calls
      .filter(
        ({ paymentId, externalId }) =>
          paymentId && !posts.some((p) => p.paymentId === paymentId && p.externalId === externalId),
      )
      .map(({ id, paymentId }) => `${id}: ${paymentId}`),

  "one key, two answers": ({ calls }) =>
    [...groupsOf(calls, ({ key }) => key)]
      .filter(([key]) => key !== undefined)
      .map(([key, all]) => [key, new Set(all.flatMap(({ paymentId }) => paymentId ?? []))] as const)
      .filter(([, payments]) => payments.size > 1)
      .map(([key, payments]) => `${key}: ${[...payments].join(", ")}`),

  "a key's answer is forgotten": ({ calls }) =>
    calls
      .filter(
        ({ id, outcome }) => id.endsWith("!") && (outcome === "unknown" || outcome === "refused"),
      )
      .map(({ id, error }) => `${id}: ${error}`),

  "acknowledged, not in the log once": ({ callbacks, log }) =>
    callbacks
      .filter(({ answers }) => answers.some(({ status }) => status === 200))
      .map(({ id }) => [id, log.filter(({ callback }) => callback === id).length] as const)
      .filter(([, times]) => times !== 1)
      .map(([id, times]) => `${id}: ${times} times`),

  "never acknowledged": ({ callbacks }) =>
    callbacks
      .filter(({ answers }) => answers.length > 0)
      .filter(({ answers }) => answers.every(({ status }) => status !== 200))
      .map(({ id, answers }) => `${id}: ${answers.map(({ status }) => status).join(", ")}`),

  "one callback under two cursors": ({ log, shown }) => {
    const cursors = new Map<string, Set<string>>();
    // The current state is told with the place that the log has come to.
    for (const { callback, cursor } of [...log, ...shown.filter(({ isFirst }) => !isFirst)]) {
      if (callback === undefined) continue;
      cursors.set(callback, (cursors.get(callback) ?? new Set()).add(cursor));
    }
    return [...cursors]
      .filter(([, all]) => all.size > 1)
      .map(([callback, all]) => `${callback}: ${[...all].join(", ")}`);
  },

  "shown, not in the log": ({ shown, log }) => {
    const cursors = new Set(log.map(({ cursor }) => cursor));
    return shown.filter(({ cursor }) => !cursors.has(cursor)).map(told);
  },

  "shown twice or out of order": ({ shown }) =>
    [...groupsOf(shown, ({ watcher }) => watcher)].flatMap(([, all]) =>
      all.filter(({ cursor }, at) => at > 0 && cursor <= (all[at - 1]?.cursor ?? "")).map(told),
    ),

  "left out": ({ shown, log, watchers }) =>
    watchers.flatMap(({ id, externalId, from }) => {
      if (from === undefined) return [];
      const seen = new Set(shown.filter(({ watcher }) => watcher === id).map((s) => s.cursor));
      return log
        .filter((event) => externalId === undefined || event.externalId === externalId)
        .filter(({ cursor }) => cursor > from && !seen.has(cursor))
        .map(({ cursor, externalId, state }) => `${id}: ${externalId} ${state} at ${cursor}`);
    }),

  "shown to who asked for another": ({ shown, watchers }) =>
    shown.flatMap((event) => {
      const about = watchers.find(({ id }) => id === event.watcher)?.externalId;
      return about !== undefined && about !== event.externalId ? [told(event)] : [];
    }),

  "valid cursor refused": ({ refusedCursors, log }) =>
    refusedCursors
      .filter(({ cursor }) => log.some((event) => event.cursor === cursor))
      .map(({ watcher, cursor }) => `${watcher}: ${cursor}`),

  "paid, then not": ({ log }) =>
    [...groupsOf(log, ({ externalId }) => externalId)].flatMap(([externalId, all]) => {
      const paid = all.findIndex(({ state }) => state === "PAID");
      const later = all.find(({ state }, at) => paid >= 0 && at > paid && state !== "PAID");
      return later ? [`${externalId}: ${later.state} at ${later.cursor}`] : [];
    }),

  "not settled, nor flagged": ({ ends }) =>
    ends
      .filter(({ unknown, needsOperator }) => unknown && !needsOperator)
      .map(({ externalId, state }) => `${externalId}: ${state}`),

  "not what the ledger says": ({ ends }) =>
    ends
      .filter(({ state, expected, unknown, needsOperator }) => {
        if (unknown || needsOperator || state === expected) return false;
        // A refusal that is told to its caller alone leaves nothing behind.
        return !(state === "NOT_FOUND" && expected === "FAILED");
      })
      .map(({ externalId, state, expected }) => `${externalId}: ${state}, should be ${expected}`),

  "over the budget": ({ requests, limits, absences, apart }) => {
    const times = requests
      // What a process had taken when it stood still is sent when it goes on.
      .filter(
        ({ replica, sentMs }) =>
          !absences.some(
            (absence) =>
              absence.replica === replica && Math.abs(sentMs - absence.toMs - 10) <= wayMs + 10,
          ),
      )
      .map(({ sentMs }) => sentMs)
      .toSorted((a, b) => a - b);
    return times.flatMap((toMs, at) => {
      const fromMs = toMs - 1_000;
      const limit = Math.max(
        ...limits
          .filter(
            (limit, n) =>
              limit.fromMs <= toMs && (limits[n + 1]?.toldMs ?? Infinity) > fromMs - heardMs,
          )
          .map(({ perSecond }) => perSecond),
      );
      const parted = apart.find((part) => part.fromMs <= toMs && part.toMs >= fromMs);
      const allowed = limit + (parted ? sharesOf(limit, parted.gateways) : 0);
      // The way to the service takes longer for one request than for another.
      const sent = times.slice(0, at + 1).filter((ms) => ms > fromMs + 10).length;
      return sent > allowed
        ? [`${sent} of ${allowed} in the second before ${toMs.toFixed(0)}`]
        : [];
    });
  },

  "outlived its deadline": ({ calls, absences }) =>
    calls
      .filter(({ deadlineMs, endedMs, outcome }) => {
        if (deadlineMs === undefined || outcome === "gone") return false;
        return endedMs === undefined || endedMs > deadlineMs + 20;
      })
      .filter((call) => !wasAway(call, absences))
      .map(
        ({ id, deadlineMs, endedMs }) =>
          `${id}: ${deadlineMs?.toFixed(0)}, ended ${endedMs?.toFixed(0)}`,
      ),

  "never answered": ({ calls }) =>
    calls.filter(({ outcome }) => outcome === undefined).map(({ id }) => id),

  "not an error of ours": ({ calls }) =>
    calls.flatMap(({ id, error }) => (error?.startsWith("INTERNAL") ? [`${id}: ${error}`] : [])),

  "gateway that does not come back": ({ gateways }) =>
    gateways.filter(({ back }) => !back).map(({ name }) => name),
};

/** What is wrong with a history. */
export interface Violation {
  readonly check: string;
  readonly found: string;
}

export function violationsOf(history: History): Violation[] {
  return Object.entries(checks).flatMap(([check, find]) =>
    find(history).map((found) => ({ check, found })),
  );
}

/** The caller was told that the call did nothing, or failed. */
function isDenied({ outcome }: CallRecord): boolean {
  return outcome === "refused" || outcome === "failed";
}

/** Whether a request was made for a call: those that come with one key to one gateway share it. */
function isOf(post: PostRecord, call: CallRecord, calls: History["calls"]): boolean {
  const { id, key, replica, beganMs, endedMs = Infinity } = call;
  const made = calls.find((other) => other.id === post.call);
  if (key === undefined || made?.key !== key) return id === post.call;
  // Who was sent away before it left has no part in it, while another one goes on.
  return replica === post.replica && beganMs < post.sentMs && post.sentMs < endedMs - wayMs;
}

/** Longest that an answer takes to its caller. */
const wayMs = 3;

/** Whether a state denies what a request has paid, or is about to. */
function isDenial(
  { method, knownMs = Infinity }: PostRecord,
  state: string,
  toldMs: number,
): boolean {
  if (state === "FAILED" || state === "NOT_FOUND") return true;
  // A confirmation of which it is known that it goes on leaves the payment authorized. That may become
  // known while somebody asks.
  return method === "ConfirmPayment" && state === "AUTHORIZED" && knownMs > toldMs;
}

/** What gateways spend in addition that are cut off from the budget, while one is not. */
function sharesOf(limit: number, gateways: number): number {
  return (gateways - 1) * Math.max(1, Math.floor((limit * 0.8) / gateways));
}

/** A new limit is known to all gateways so long after an answer has told it. */
const heardMs = 10_000;

function wasAway(
  { replica, beganMs, endedMs = Infinity }: CallRecord,
  absences: History["absences"],
) {
  return absences.some(
    (absence) =>
      absence.replica === replica && absence.fromMs <= endedMs && absence.toMs >= beganMs,
  );
}

function nameOf({ n, request, externalId, sentMs }: PostRecord): string {
  return `request ${n} of ${request} for ${externalId} at ${sentMs.toFixed(1)}`;
}

function told({ watcher, externalId, state, cursor }: ShownRecord): string {
  return `${watcher}: ${externalId} ${state} at ${cursor}`;
}

function groupsOf<T, K>(all: readonly T[], keyOf: (one: T) => K): Map<K, T[]> {
  return Map.groupBy(all, keyOf);
}

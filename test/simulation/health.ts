import type { CallRecord, History, LoggedEvent, PostRecord } from "./history.ts";
import { type Check, check } from "./judged.ts";
import { partsOf } from "./merchant.ts";

/**
 * What must succeed while nothing is in trouble: neither the gateways nor the store, and the
 * service with the calls in question alone.
 */
export const healthChecks: Readonly<Record<string, Check>> = {
  "refused without a cause": check("calls in health", healthyCalls, (call, history) => {
    const { id, outcome = "", error } = call;
    return !answers.has(outcome) && !isExcused(call, history) && `${id}: ${outcome} ${error}`;
  }),

  "answered late": check(
    "calls in health that were answered",
    (history) =>
      healthyCalls(history).filter(
        (call) =>
          answers.has(call.outcome ?? "") &&
          !call.waits &&
          call.beganMs > startMs &&
          !isBudgetUsed(call, history),
      ),
    (call, history) => {
      const { id, beganMs, endedMs = Infinity } = call;
      const own = postsOf(call, history).map(({ answeredMs = Infinity }) => answeredMs);
      const knownMs = Math.max(beganMs, ...own.filter((ms) => ms < endedMs));
      return lateBy(id, endedMs - knownMs, promptMs);
    },
  ),

  "a wait that ends early": check(
    "calls in health that wait until they are settled",
    (history) => healthyCalls(history).filter(({ waits }) => waits === "SETTLED"),
    ({ id, beganMs, deadlineMs, endedMs = Infinity, outcome, externalId, state }, { log }) => {
      const leftMs = (deadlineMs ?? 0) - beganMs;
      const endsMs = deadlineMs ? deadlineMs - Math.max(leftMs / 10, 100) : beganMs + defaultWaitMs;
      const isGivenUp = log.some((event) => event.externalId === externalId && isEnding(event));
      return (
        outcome === "pending" &&
        endedMs < endsMs - 20 &&
        !isGivenUp &&
        `${id}: ${state} at ${endedMs.toFixed(0)}, waits until ${endsMs.toFixed(0)}`
      );
    },
  ),

  "a wait that ends late": check(
    "calls in health that wait, alone with their payment",
    (history) => healthyCalls(history).filter((call) => call.waits && isAlone(call, history)),
    (call, history) => {
      const { id, externalId, beganMs, endedMs = Infinity } = call;
      const settled = history.log.find(
        // What was settled before may be an earlier try.
        (event) =>
          event.externalId === externalId && event.storedMs >= beganMs && !isOpen(event.state),
      );
      if (!settled) return false;
      // A call waits behind the service's answer, which may be slower than the callback.
      const answered = postsOf(call, history).map(({ answeredMs = 0 }) => answeredMs);
      const lateMs = endedMs - Math.max(settled.storedMs, ...answered);
      return lateBy(id, lateMs, promptMs + slowestMs);
    },
  ),

  "a watch that ends early": check(
    "watches that ended with their payment",
    ({ watchers }) => watchers.filter(({ endedMs }) => endedMs !== undefined),
    ({ id, externalId, endedMs = 0 }, history) => {
      const shown = history.shown.filter(({ watcher }) => watcher === id);
      const isOver = history.log.some(
        (event) =>
          event.externalId === externalId &&
          (event.isFinal || isEnding(event)) &&
          event.storedMs <= endedMs + clockMs,
      );
      if (!isOver) return `${id}: after ${shown.at(-1)?.state}`;
      if (shown.some(isEnding)) return false;
      // The stores' answer to whether a call is open may be late.
      const readMs = isHealthy(history, endedMs, endedMs) ? 100 : 8_000;
      return history.posts
        .filter(
          (post) =>
            post.externalId === externalId &&
            post.charged &&
            post.sentMs < endedMs - readMs &&
            (post.knownMs ?? Infinity) > endedMs + 10,
        )
        .filter((post) => !isDoneWith(post, history, endedMs))
        .map((post) => `${id}: request ${post.n} of ${post.request} is open`);
    },
  ),

  "a watch that does not end": check(
    "watches that are to end with their payment",
    ({ watchers }) => watchers.filter(({ untilFinal }) => untilFinal),
    ({ id, externalId, from, endedMs }, { ends, log }) => {
      const end = ends.find((one) => one.externalId === externalId);
      if (endedMs !== undefined || from === undefined || !end) return false;
      if (end.unknown || end.needsOperator) return false;
      const last = log.findLast((event) => event.externalId === externalId && event.isPaying);
      return last?.isFinal === true && `${id}: ${last.state}`;
    },
  ),

  "shown late": check(
    "events that a connected watcher was to see in health",
    (history) => {
      const shownTo = Map.groupBy(history.shown, ({ watcher }) => watcher);
      return history.watchers.flatMap((watcher) => {
        const { id, account, externalId, connected = [], from, endedMs } = watcher;
        const shownMs = new Map(shownTo.get(id)?.map(({ cursor, atMs }) => [cursor, atMs]));
        const last = shownTo.get(id)?.at(-1)?.cursor ?? "";
        return history.log
          .filter(
            (event) =>
              event.account === account &&
              (externalId ?? event.externalId) === event.externalId &&
              event.cursor > (from ?? "") &&
              (endedMs === undefined || event.cursor <= last) &&
              connected.some(
                ({ fromMs, toMs }) => fromMs < event.storedMs && event.storedMs < toMs - promptMs,
              ) &&
              isHealthy(history, event.storedMs, event.storedMs + promptMs),
          )
          .map((event) => ({ ...event, id, atMs: shownMs.get(event.cursor) ?? Infinity }));
      });
    },
    ({ id, externalId, state, storedMs, atMs }) =>
      atMs > storedMs + promptMs && `${id}: ${externalId} ${state} at ${storedMs}, shown ${atMs}`,
  ),

  "published as unknown without a cause": check(
    "events in health that a call's outcome is unknown",
    (history) =>
      history.log.filter(
        ({ callOutcome, storedMs }) =>
          callOutcome === "UNKNOWN" && isHealthy(history, storedMs, storedMs),
      ),
    ({ externalId, storedMs }, history) => {
      const isUnclear = history.posts.some(
        (post) => post.externalId === externalId && !isClear(post),
      );
      const isLost = history.calls.some(
        (call) =>
          call.externalId === externalId &&
          (wasLost(call.request, history) || diedWithItsGateway(call, history)),
      );
      return !isUnclear && !isLost && `${externalId} at ${storedMs}`;
    },
  ),

  "settled late": check(
    "lost calls in health whose callback came, alone with their payment",
    (history) =>
      [...Map.groupBy(history.log, ({ externalId }) => externalId)].flatMap(([externalId, all]) => {
        const unknown = all.find(({ callOutcome }) => callOutcome === "UNKNOWN");
        const told = all.find(
          (event) =>
            unknown &&
            event.callback &&
            event.isFinal &&
            event.cursor > unknown.cursor &&
            // What comes before the call is stored as unknown is found by its first look-up.
            event.storedMs > unknown.storedMs + 100,
        );
        const isOnly = history.calls.filter((call) => call.externalId === externalId).length === 1;
        const isSettledBefore = all.some(
          ({ callOutcome = "", cursor }) =>
            callOutcome !== "" && callOutcome !== "UNKNOWN" && cursor < (told?.cursor ?? ""),
        );
        if (!unknown || !told || !isOnly || isSettledBefore) return [];
        if (!isHealthy(history, unknown.storedMs, told.storedMs + settleMs)) return [];
        return [{ externalId, told, all }];
      }),
    ({ externalId, told, all }) => {
      const settled = all.find((event) => event.callOutcome === "SETTLED");
      return lateBy(externalId, (settled?.storedMs ?? Infinity) - told.storedMs, settleMs);
    },
  ),

  "looked up too often": check(
    "payments that were looked up",
    (history) => Map.groupBy(lookUpsOf(history), ({ about = "" }) => about),
    ([about, all], history) => {
      const calls = history.calls.filter(({ externalId }) => externalId === about).length;
      const events = history.log.filter(({ externalId }) => externalId === about).length;
      // A look that finds no token for its second request asks the first one again.
      const most = 20 * Math.max(1, calls) + 2 * events;
      return all.length > most && `${about}: ${all.length} times, at most ${most}`;
    },
  ),

  "looked up by two gateways": check(
    "look-ups in health that follow another one",
    (history) =>
      [...Map.groupBy(lookUpsOf(history), ({ account }) => account).values()]
        .flatMap((all) => all.slice(1).map((later, at) => [all[at]!, later] as const))
        .filter(([before, later]) => isHealthy(history, before.sentMs, later.sentMs)),
    ([before, later]) =>
      before.replica !== later.replica &&
      later.sentMs - before.sentMs < leaseMs &&
      `${before.about} by ${before.replica}, ${later.about} by ${later.replica}`,
  ),
};

/** Long after its cause is over, a trouble may still have effects, in milliseconds. */
const afterTroubleMs = 25_000;
/** How far the clock of a store that took over may be ahead. */
const clockMs = 50;
/** When gateways that started with the history know the budget. */
const startMs = 1_600;
const noTokens: ReadonlySet<string> = new Set(["DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"]);
/** Whatever needs no waiting takes at most this long. */
const promptMs = 1_000;
/** A call's wait looks at the stores this often, and a call may wait for its token as long. */
const slowestMs = 1_000;
/** Longest between a callback and the settlement of its call. */
const settleMs = 2_500;
/** A wait without a deadline. */
const defaultWaitMs = 30_000;
/** The reconciler's lease, less the time in which it may pass to another gateway. */
const leaseMs = 9_000;

const answers: ReadonlySet<string> = new Set(["paid", "pending", "failed"]);
const endings: ReadonlySet<string> = new Set(["NOT_DONE", "NEEDS_OPERATOR"]);

/** A call of open outcome was given up, or is known to have done nothing. */
function isEnding({ callOutcome = "" }: LoggedEvent): boolean {
  return endings.has(callOutcome);
}

function lateBy(name: string, lateMs: number, mostMs: number): string | false {
  return lateMs > mostMs && `${name}: ${lateMs.toFixed(0)} ms late`;
}

function isOpen(state: string): boolean {
  return ["UNSPECIFIED", "PENDING", "UNKNOWN"].includes(state);
}

/** Whether nothing was in trouble in this time, nor shortly before. */
function isHealthy({ troubles, absences }: History, fromMs: number, toMs: number): boolean {
  return [troubles, absences].every((all) =>
    all.every((one) => one.fromMs > toMs || one.toMs + afterTroubleMs < fromMs),
  );
}

function healthyCalls(history: History): CallRecord[] {
  return history.calls.filter(
    ({ beganMs, endedMs, outcome }) =>
      endedMs !== undefined && outcome !== "gone" && isHealthy(history, beganMs, endedMs),
  );
}

function postsOf({ request }: CallRecord, { posts }: History): PostRecord[] {
  return posts.filter((post) => post.request === request);
}

function wasLost(request: string, { requests }: History): boolean {
  return requests.some((one) => one.request === request && one.isLost);
}

/** Whether its gateway was killed while it ran: before anything left, too. */
function diedWithItsGateway({ replica, beganMs, endedMs }: CallRecord, { absences }: History) {
  return absences.some(
    ({ replica: absent, fromMs }) =>
      absent === replica && fromMs >= beganMs && fromMs <= (endedMs ?? Infinity),
  );
}

/** Whether a gateway received an answer to a request that it can understand. */
function isClear({ answer, answeredMs, tooMany, sentMs }: PostRecord): boolean {
  return (tooMany || answer !== "unclear") && (answeredMs ?? Infinity) < sentMs + 1_900;
}

function isDoneWith({ externalId }: PostRecord, { log }: History, byMs: number): boolean {
  return log.some(
    (event) =>
      event.externalId === externalId && event.callOutcome === "SETTLED" && event.storedMs <= byMs,
  );
}

function isExcused(call: CallRecord, history: History): boolean {
  const { account, request, key, error = "", beganMs, endedMs = 0, deadlineMs } = call;
  const own = postsOf(call, history);
  // The service refused it or left it open. A key keeps such an answer, but not a "try later".
  if (own.some((post) => post.answer === "refusal" || (!post.tooMany && !isClear(post)))) {
    return true;
  }
  if (own.some((post) => post.tooMany && (post.answeredMs ?? Infinity) > beganMs - 40)) {
    return true;
  }
  if (wasLost(request, history)) return true;
  // In the words of the service it must be its answer to this call.
  if (!error.includes("too_many_requests") && isBudgetUsed(call, history)) return true;
  if (deadlineMs !== undefined && endedMs > deadlineMs - 200) {
    // It had no time, or its answer came too late. Another gateway asks for it now and then.
    const isShort = deadlineMs - beganMs < 200;
    const isLate = ({ answeredMs = Infinity, replica }: PostRecord) =>
      answeredMs > deadlineMs - storingMs - (replica === call.replica ? 0 : maxPauseMs);
    if (isShort || own.some(isLate)) return true;
  }
  const [code = ""] = error.split(" ");
  // A gateway that has just started does not know how much of the budget was used before.
  if (beganMs < startMs && noTokens.has(code)) return true;
  switch (code) {
    case "ALREADY_EXISTS":
      return history.calls.some(
        (other) => other.account === account && other.key === key && other.request !== request,
      );
    case "ABORTED":
      return history.calls.some((other) => isBefore(other, call, history));
    case "UNAVAILABLE":
      // The service failed before: the gateway may spare it for a while.
      return (
        history.requests.some(({ sentMs, isLost }) => isLost && sentMs < endedMs) ||
        history.posts.some((post) => post.sentMs < endedMs && !isClear(post))
      );
    default:
      return false;
  }
}

/** How long it takes to store an answer; replicas lag by 20 ms at most in health (plan.ts). */
const storingMs = 50;

/** Longest pause between two looks for the answer of a call at another gateway, in milliseconds. */
const maxPauseMs = 320;

/** Whether another request may have been open when a call began, or was asked to begin. */
function isBefore(other: CallRecord, call: CallRecord, history: History): boolean {
  if (other.request === call.request || other.externalId !== call.externalId) return false;
  if (other.method !== call.method || other.beganMs > (call.endedMs ?? 0)) return false;
  const posts = postsOf(other, history);
  const isOver =
    posts.length > 0 &&
    posts.every((post) => isClear(post) && (post.answeredMs ?? Infinity) < call.beganMs - 50);
  return !isOver || wasLost(other.request, history);
}

/** Whether so much of the account's budget was in use that a call may have had to wait. */
function isBudgetUsed({ account, beganMs, endedMs = 0 }: CallRecord, history: History): boolean {
  const { requests, limits, posts, calls } = history;
  const limit = Math.min(
    ...limits.flatMap((one) => (one.account === account ? one.perSecond : [])),
  );
  const near = requests.filter(
    (one) => one.account === account && one.sentMs > beganMs - 1_500 && one.sentMs <= endedMs,
  );
  // A token stays out also if its caller leaves before the request is sent.
  const left = calls.filter(
    (one) =>
      one.account === account &&
      one.outcome === "gone" &&
      one.beganMs <= endedMs &&
      (one.endedMs ?? Infinity) > beganMs - 1_500 &&
      postsOf(one, history).length === 0,
  );
  // After a Too Many Requests nothing leaves until the service's window has passed.
  const wasRefused = posts.some(
    ({ tooMany, externalId, sentMs }) =>
      tooMany &&
      partsOf(externalId).account === account &&
      sentMs > beganMs - 2_500 &&
      sentMs <= endedMs,
  );
  return wasRefused || near.length + left.length >= limit / 2;
}

/** Whether no other request is about its payment, and nothing else changes it. */
function isAlone({ request, externalId }: CallRecord, { calls, log }: History): boolean {
  return (
    calls.every((other) => other.externalId !== externalId || other.request === request) &&
    log.every((event: LoggedEvent) => event.externalId !== externalId || !event.callOutcome)
  );
}

function lookUpsOf({ requests }: History): History["requests"][number][] {
  return requests.filter(({ about }) => about !== undefined);
}

import type { CallRecord, History, LoggedEvent, PostRecord } from "./history.ts";
import { type Check, groupsOf, judged } from "./judged.ts";
import { partsOf } from "./merchant.ts";

/**
 * What must succeed while nothing is in trouble: neither the gateways nor the store, and the
 * service with the calls in question alone.
 */
export const healthChecks: Readonly<Record<string, Check>> = {
  "refused without a cause": {
    of: "calls in health",
    judge: (history) =>
      judged(healthyCalls(history), (call) =>
        answers.has(call.outcome ?? "") || isExcused(call, history)
          ? []
          : [`${call.id}: ${call.outcome} ${call.error}`],
      ),
  },

  "answered late": {
    of: "calls in health that were answered",
    judge: (history) =>
      judged(
        healthyCalls(history).filter(
          (call) =>
            answers.has(call.outcome ?? "") &&
            !call.waits &&
            call.beganMs > startMs &&
            !isBudgetUsed(call, history),
        ),
        (call) => {
          const { id, beganMs, endedMs = Infinity } = call;
          const own = postsOf(call, history).map(({ answeredMs = Infinity }) => answeredMs);
          const knownMs = Math.max(beganMs, ...own.filter((ms) => ms < endedMs));
          const lateMs = endedMs - knownMs;
          return lateMs > promptMs ? [`${id}: ${lateMs.toFixed(0)} ms late`] : [];
        },
      ),
  },

  "a wait that ends early": {
    of: "calls in health that wait until they are settled",
    judge: (history) =>
      judged(
        healthyCalls(history).filter(({ waits }) => waits === "SETTLED"),
        ({ id, beganMs, deadlineMs, endedMs = Infinity, outcome, externalId, state }) => {
          const leftMs = (deadlineMs ?? 0) - beganMs;
          const endsMs = deadlineMs
            ? deadlineMs - Math.max(leftMs / 10, 100)
            : beganMs + defaultWaitMs;
          const isGivenUp = history.log.some(
            (event) => event.externalId === externalId && endings.has(event.callOutcome ?? ""),
          );
          return outcome === "pending" && endedMs < endsMs - 20 && !isGivenUp
            ? [`${id}: ${state} at ${endedMs.toFixed(0)}, waits until ${endsMs.toFixed(0)}`]
            : [];
        },
      ),
  },

  "a wait that ends late": {
    of: "calls in health that wait, alone with their payment",
    judge: (history) =>
      judged(
        healthyCalls(history).filter((call) => call.waits && isAlone(call, history)),
        (call) => {
          const { id, externalId, beganMs, endedMs = Infinity } = call;
          const settled = history.log.find(
            // What was settled before may be an earlier try.
            (event) =>
              event.externalId === externalId && event.storedMs >= beganMs && !isOpen(event.state),
          );
          if (!settled) return [];
          // A call waits behind the service's answer, which may be slower than the callback.
          const answered = postsOf(call, history).map(({ answeredMs = 0 }) => answeredMs);
          const lateMs = endedMs - Math.max(settled.storedMs, ...answered);
          return lateMs > promptMs + slowestMs ? [`${id}: ${lateMs.toFixed(0)} ms late`] : [];
        },
      ),
  },

  "a watch that ends early": {
    of: "watches that ended with their payment",
    judge: (history) =>
      judged(
        history.watchers.filter(({ endedMs }) => endedMs !== undefined),
        ({ id, externalId, endedMs = 0 }) => {
          const shown = history.shown.filter(({ watcher }) => watcher === id);
          const isOver = history.log.some(
            (event) =>
              event.externalId === externalId &&
              (event.isFinal || endings.has(event.callOutcome ?? "")) &&
              event.storedMs <= endedMs + clockMs,
          );
          if (!isOver) return [`${id}: after ${shown.at(-1)?.state}`];
          if (shown.some(({ callOutcome = "" }) => endings.has(callOutcome))) return [];
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
  },

  "a watch that does not end": {
    of: "watches that are to end with their payment",
    judge: (history) =>
      judged(
        history.watchers.filter(({ untilFinal }) => untilFinal),
        ({ id, externalId, from, endedMs }) => {
          const end = history.ends.find((one) => one.externalId === externalId);
          if (endedMs !== undefined || from === undefined || !end) return [];
          if (end.unknown || end.needsOperator) return [];
          const own = history.log.filter((event) => event.externalId === externalId);
          const paying = own.filter(({ isPaying }) => isPaying);
          return paying.at(-1)?.isFinal ? [`${id}: ${paying.at(-1)?.state}`] : [];
        },
      ),
  },

  "shown late": {
    of: "events that a connected watcher was to see in health",
    judge(history) {
      const shownTo = groupsOf(history.shown, ({ watcher }) => watcher);
      const due = history.watchers.flatMap((watcher) => {
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
          .map((event) => ({ id, event, atMs: shownMs.get(event.cursor) }));
      });
      return judged(due, ({ id, event, atMs = Infinity }) =>
        atMs > event.storedMs + promptMs
          ? [`${id}: ${event.externalId} ${event.state} at ${event.storedMs}, shown ${atMs}`]
          : [],
      );
    },
  },

  "published as unknown without a cause": {
    of: "events in health that a call's outcome is unknown",
    judge: (history) =>
      judged(
        history.log.filter(
          ({ callOutcome, storedMs }) =>
            callOutcome === "UNKNOWN" && isHealthy(history, storedMs, storedMs),
        ),
        ({ externalId, storedMs }) =>
          history.posts.some((post) => post.externalId === externalId && !isClear(post)) ||
          history.calls.some(
            (call) =>
              call.externalId === externalId &&
              (wasLost(call.request, history) || diedWithItsGateway(call, history)),
          )
            ? []
            : [`${externalId} at ${storedMs}`],
      ),
  },

  "settled late": {
    of: "lost calls in health whose callback came, alone with their payment",
    judge(history) {
      const lost = [...groupsOf(history.log, ({ externalId }) => externalId)].flatMap(
        ([externalId, all]) => {
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
          const requests = history.calls.filter((call) => call.externalId === externalId);
          const isOnly = new Set(requests.map(({ request }) => request)).size === 1;
          const isSettledBefore = all.some(
            ({ callOutcome = "", cursor }) =>
              callOutcome !== "" && callOutcome !== "UNKNOWN" && cursor < (told?.cursor ?? ""),
          );
          if (!unknown || !told || !isOnly || requests.length > 1 || isSettledBefore) return [];
          if (!isHealthy(history, unknown.storedMs, told.storedMs + settleMs)) return [];
          return [{ externalId, told, all }];
        },
      );
      return judged(lost, ({ externalId, told, all }) => {
        const settled = all.find((event) => event.callOutcome === "SETTLED");
        const lateMs = (settled?.storedMs ?? Infinity) - told.storedMs;
        return lateMs > settleMs ? [`${externalId}: ${lateMs} ms after its callback`] : [];
      });
    },
  },

  "looked up too often": {
    of: "payments that were looked up",
    judge: (history) =>
      judged(
        groupsOf(lookUpsOf(history), ({ about = "" }) => about),
        ([about, all]) => {
          const calls = history.calls.filter(({ externalId }) => externalId === about).length;
          const events = history.log.filter(({ externalId }) => externalId === about).length;
          // A look that finds no token for its second request asks the first one again.
          const most = 20 * Math.max(1, calls) + 2 * events;
          return all.length > most ? [`${about}: ${all.length} times, at most ${most}`] : [];
        },
      ),
  },

  "looked up by two gateways": {
    of: "look-ups in health that follow another one",
    judge(history) {
      const pairs = [...groupsOf(lookUpsOf(history), ({ account }) => account).values()].flatMap(
        (all) => all.slice(1).map((later, at) => ({ later, before: all[at] as typeof later })),
      );
      return judged(
        pairs.filter(({ before, later }) => isHealthy(history, before.sentMs, later.sentMs)),
        ({ before, later }) =>
          before.replica !== later.replica && later.sentMs - before.sentMs < leaseMs
            ? [`${before.about} by ${before.replica}, ${later.about} by ${later.replica}`]
            : [],
      );
    },
  },
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
function isBudgetUsed(
  { account, beganMs, endedMs = 0 }: CallRecord,
  { requests, limits, posts }: History,
): boolean {
  const limit = Math.min(
    ...limits.flatMap((one) => (one.account === account ? one.perSecond : [])),
  );
  const near = requests.filter(
    (one) => one.account === account && one.sentMs > beganMs - 1_500 && one.sentMs <= endedMs,
  );
  // After a Too Many Requests nothing leaves until the service's window has passed.
  const wasRefused = posts.some(
    ({ tooMany, externalId, sentMs }) =>
      tooMany &&
      partsOf(externalId).account === account &&
      sentMs > beganMs - 2_500 &&
      sentMs <= endedMs,
  );
  return wasRefused || near.length >= limit / 2;
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

import { healthChecks } from "./health.ts";
import {
  type CallRecord,
  type EndRecord,
  type History,
  type LoggedEvent,
  type PostRecord,
  type ShownRecord,
  statesListed,
} from "./history.ts";
import { type Check, check } from "./judged.ts";

/**
 * The promises, and the checks that show each one to be broken. A check judges by the history
 * alone, and does not depend on the code that made it.
 */
export const promises: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  "while a call that moves money has no understood answer, no second one of its method leaves for its `external_id`":
    {
      "sent while another is open": check(
        "requests that move money",
        ({ posts }) => posts,
        (post, { posts }) =>
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
    },

  "an `Idempotency-Key` means once, and gets the first answer again": {
    "key sent twice": check(
      "keys of which a request left",
      ({ posts, calls }) => {
        const keyed = new Map(
          calls.flatMap((call) => (call.key ? [[call.request, keyOf(call)] as const] : [])),
        );
        const sent = posts.filter(({ request, tooMany }) => keyed.has(request) && !tooMany);
        return Map.groupBy(sent, ({ request }) => keyed.get(request)).values();
      },
      (all) => all.length > 1 && all.map(nameOf).join(", "),
    ),

    "one key, two answers": check(
      "keys that were answered",
      // Who waits is answered with the payment as it is then.
      ({ calls }) =>
        Map.groupBy(
          calls.filter((call) => call.key && call.paymentId && !call.waits),
          keyOf,
        ),
      ([key, all]) =>
        severalIn(
          key,
          all.map(({ paymentId }) => paymentId),
        ),
    ),

    "one key, two requests": check(
      "answered calls whose key was used for another request too",
      ({ calls }) => {
        const keyed = calls.filter(({ key }) => key !== undefined);
        return [...Map.groupBy(keyed, keyOf)].filter(
          ([, all]) => new Set(all.map(({ request }) => request)).size > 1,
        );
      },
      ([key, all]) => {
        const answered = all.filter(({ paymentId }) => paymentId);
        return severalIn(
          key,
          answered.map(({ request }) => request),
        );
      },
    ),

    "a key's answer is forgotten": check(
      "answered keys that are sent once more in the end",
      ({ calls }) => calls.filter(({ id }) => id.endsWith("!")),
      ({ id, outcome, error }) =>
        (outcome === "unknown" || outcome === "refused") && `${id}: ${error}`,
    ),
  },

  "what was charged is not told as failed, by the call, by `GetPayment`, or by the event that a lost call was not done; nor what was not charged as paid":
    {
      "charged, told as failed": check(
        "requests that were charged",
        ({ posts }) => posts.filter(({ charged }) => charged),
        (post, { calls }) => {
          const all = calls.filter(({ request }) => request === post.request);
          // If all calls of the request were denied, it does not matter for which one it was sent.
          const denied = all.every(isDenied)
            ? all.slice(-1)
            : calls.filter((call) => isDenied(call) && isOf(post, call, calls));
          return denied.map(
            ({ id, error, outcome }) => `${nameOf(post)}: ${id} ${error ?? outcome}`,
          );
        },
      ),

      "charged, shown as failed": check(
        "answers of GetPayment and GetPayout in between",
        ({ looks }) => looks,
        ({ externalId, askedMs, atMs, state }, { posts }) =>
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

      "charged, told as not done": check(
        "events that a call was not done",
        ({ log }) => log.filter(({ callOutcome }) => callOutcome === "NOT_DONE"),
        ({ externalId, storedMs }, { posts, calls }) => {
          const isTold = (post: PostRecord) => {
            const own = calls.find(({ id }) => id === post.call);
            return own && own.beganMs < storedMs && storedMs < post.arrivedMs;
          };
          // Among several calls, the event does not name the one that it is about.
          const isAlone = (post: PostRecord) =>
            calls.every(
              (call) =>
                call.id === post.call || call.externalId !== externalId || call.beganMs > storedMs,
            );
          return posts
            .filter((post) => post.charged && post.externalId === externalId)
            .filter((post) => isTold(post) && isAlone(post))
            .map((post) => `${nameOf(post)}: not done at ${storedMs}`);
        },
      ),

      "told as paid, not charged": check(
        "answers that it is paid",
        ({ calls }) => calls.filter(({ outcome }) => outcome === "paid"),
        ({ id, paymentId, externalId, waits }, { posts, elsewhere }) => {
          const paid = [...posts.filter(({ charged }) => charged), ...elsewhere];
          // Who waits asks whether it is paid, by whichever attempt.
          const isPaid = paid.some((one) =>
            waits ? one.externalId === externalId : one.paymentId === paymentId,
          );
          return !isPaid && `${id}: ${paymentId}`;
        },
      ),
    },

  "an answer to another request is not taken for this one's": {
    "told of another payment": check(
      "answers with a payment",
      ({ calls }) => calls.filter(({ paymentId }) => paymentId),
      ({ id, paymentId, externalId }, { posts, elsewhere }) =>
        ![...posts, ...elsewhere].some(
          (post) => post.paymentId === paymentId && post.externalId === externalId,
        ) && `${id}: ${paymentId}`,
    ),
  },

  "what was acknowledged is in the log, once, and a callback is acknowledged in the end": {
    "acknowledged, not in the log once": check(
      "callbacks that were acknowledged",
      ({ callbacks }) =>
        callbacks.filter(({ answers }) => answers.some(({ status }) => status === 200)),
      ({ id }, { log }) => {
        const times = log.filter(({ callback }) => callback === id).length;
        return times !== 1 && `${id}: ${times} times`;
      },
    ),

    "one callback under two cursors": check(
      "callbacks that were stored or shown",
      ({ log, shown }) => {
        // The current state that begins a watch has the log's current cursor instead of its own.
        const events = [...log, ...shown.filter(({ isFirst }) => !isFirst)];
        const told = events.filter(({ callback }) => callback !== undefined);
        return Map.groupBy(told, ({ callback }) => callback);
      },
      ([callback = "", all]) =>
        severalIn(
          callback,
          all.map(({ cursor }) => cursor),
        ),
    ),

    "never acknowledged": check(
      "callbacks that were sent",
      ({ callbacks }) => callbacks.filter(({ answers }) => answers.length > 0),
      ({ id, answers }) =>
        answers.every(({ status }) => status !== 200) &&
        `${id}: ${answers.map(({ status }) => status).join(", ")}`,
    ),
  },

  "a watcher sees each event of its payment once, in order, without a gap, over any number of cuts":
    {
      "shown twice or out of order": check(
        "events that were shown",
        ({ shown }) =>
          [...Map.groupBy(shown, ({ watcher }) => watcher).values()].flatMap((all) =>
            all.map((event, n) => ({ event, before: all[n - 1]?.cursor ?? "" })),
          ),
        ({ event, before }) => event.cursor <= before && told(event),
      ),

      "left out": check(
        "events that a watcher was to see",
        ({ shown, log, watchers }) => {
          const seenBy = Map.groupBy(shown, ({ watcher }) => watcher);
          return watchers.flatMap(({ id, account, externalId: about, from, endedMs }) => {
            if (from === undefined) return [];
            const last = seenBy.get(id)?.at(-1)?.cursor ?? "";
            const seen = new Set(seenBy.get(id)?.map(({ cursor }) => cursor));
            return log
              .filter(
                (event) =>
                  (event.account ?? account) === (account ?? event.account) &&
                  (about ?? event.externalId) === event.externalId &&
                  event.cursor > from &&
                  // A watch that ended with its payment was to see what came before.
                  (endedMs === undefined || event.cursor <= last),
              )
              .map((event) => ({ ...event, watcher: id, isSeen: seen.has(event.cursor) }));
          });
        },
        (event) => !event.isSeen && told(event),
      ),

      "shown, not in the log": check(
        "events that were shown",
        ({ shown, log }) => {
          const cursors = new Set(log.map(({ cursor }) => cursor));
          return shown.map((event) => ({ event, isStored: cursors.has(event.cursor) }));
        },
        ({ event, isStored }) => !isStored && told(event),
      ),

      "shown otherwise than stored": check(
        "events that were shown as they are",
        ({ shown, log }) => {
          const states = new Map(log.map(({ cursor, state }) => [cursor, state]));
          return shown
            .filter(({ isFirst, cursor }) => !isFirst && states.has(cursor))
            .map((event) => ({ event, stored: states.get(event.cursor) }));
        },
        ({ event, stored }) => event.state !== stored && `${told(event)}, stored as ${stored}`,
      ),

      "shown to who asked for another": check(
        "events shown to who asked for one payment",
        ({ shown, watchers }) => {
          const abouts = new Map(watchers.map(({ id, externalId }) => [id, externalId]));
          return shown.flatMap((event) => {
            const about = abouts.get(event.watcher);
            return about === undefined ? [] : [{ event, about }];
          });
        },
        ({ event, about }) => event.externalId !== about && told(event),
      ),

      "valid cursor refused": check(
        "cursors that a watcher came back with",
        ({ resumed }) => resumed,
        ({ watcher, cursor, refused }, { log }) =>
          refused && log.some((event) => event.cursor === cursor) && `${watcher}: ${cursor}`,
      ),

      "no cursor, and not refused": check(
        "texts that were given instead of a cursor",
        ({ misread }) => misread,
        ({ cursor, expected, told }) =>
          told !== expected && `${cursor}: ${told}, should be ${expected}`,
      ),
    },

  "`state` does not leave `PAID`, and is in the end what the ledger says": {
    "paid, then not": check(
      "payments that the log calls paid",
      ({ log }) =>
        [...Map.groupBy(log, ({ externalId }) => externalId)].flatMap(([externalId, all]) => {
          const paid = all.findIndex(({ state }) => state === "PAID");
          return paid < 0 ? [] : [{ externalId, since: all.slice(paid) }];
        }),
      ({ externalId, since }, { elsewhere }) => {
        const taken = elsewhere.filter((one) => one.externalId === externalId);
        const later = since.find(
          ({ state, storedMs }) => state !== "PAID" && !mayBe(state, storedMs, taken),
        );
        return later !== undefined && `${externalId}: ${later.state} at ${later.cursor}`;
      },
    ),

    "not what the ledger says": check(
      "payments that are known in the end",
      ({ ends }) => ends.filter(({ unknown, needsOperator }) => !unknown && !needsOperator),
      ({ externalId, state, expected }) =>
        state !== expected &&
        // A refusal that only its caller receives leaves no state.
        !(state === "NOT_FOUND" && expected === "FAILED") &&
        `${externalId}: ${state}, should be ${expected}`,
    ),
  },

  "a list shows each payment once, as `GetPayment` does": {
    "listed otherwise": check(
      "payments that are asked for in the end, in each list",
      ({ calls, ends, listed, log }) => {
        // GetPayout asks the service, which may say what no event has told.
        const isAsked = ({ externalId, state }: EndRecord) =>
          calls.some((call) => call.externalId === externalId && call.method === "RequestPayout") &&
          (state === "PAID" || state === "FAILED") &&
          !log.some((event) => event.externalId === externalId && event.state === state);
        return ends
          .filter(({ state }) => listed !== undefined && state !== "UNAVAILABLE")
          .filter((end) => !isAsked(end))
          .flatMap((end) => [undefined, ...statesListed].map((of) => ({ ...end, of })));
      },
      ({ externalId, state, unknown, needsOperator, of }, { listed = [] }) => {
        const isIn = state !== "NOT_FOUND" && (of === undefined || of === state);
        const expected = isIn ? [JSON.stringify([state, unknown, needsOperator])] : [];
        const shown = listed
          .filter((row) => row.externalId === externalId && row.of === of)
          .map((row) => JSON.stringify([row.state, row.unknown, row.needsOperator]));
        return (
          `${shown}` !== `${expected}` &&
          `${externalId}: ${shown} in the list of ${of ?? "all"}, should be ${expected}`
        );
      },
    ),
  },

  "an unknown outcome is settled, or flagged for an operator": {
    "published as unknown, and nothing since": check(
      "payments with an event that a call's outcome is unknown",
      ({ log }) => {
        const outcomes = log.filter(({ callOutcome }) => callOutcome !== undefined);
        return [...Map.groupBy(outcomes, ({ externalId }) => externalId)].filter(([, all]) =>
          all.some(isUnknown),
        );
      },
      // An event does not name its call: as many calls must have ended as became unknown.
      ([externalId, all]) => {
        const open = all.filter(isUnknown).length;
        return (
          2 * open > all.length && `${externalId}: ${open} unknown, ${all.length - open} ended`
        );
      },
    ),

    "not settled, nor flagged": check(
      "payments that are asked for in the end",
      ({ ends }) => ends,
      ({ externalId, state, unknown, needsOperator }) =>
        unknown && !needsOperator && `${externalId}: ${state}`,
    ),
  },

  "the service's budget per second holds": {
    "over the budget": check(
      "requests",
      ({ requests, limits, absences }) => {
        // Leaves out what a paused process sends when it resumes: it took those tokens before.
        const counted = requests.filter(
          ({ replica, sentMs }) =>
            !absences.some(
              (absence) =>
                absence.replica === replica && Math.abs(sentMs - absence.toMs - 10) <= wayMs + 10,
            ),
        );
        return [...Map.groupBy(counted, ({ account }) => account)].flatMap(([account, sent]) => {
          const own = limits.filter((limit) => limit.account === account);
          const times = sent.map(({ sentMs }) => sentMs).toSorted((a, b) => a - b);
          return times.map((toMs, at) => {
            // The latency to the service varies: 10 ms of the second do not count.
            const within = times.slice(0, at + 1).filter((ms) => ms > toMs - 990);
            return { toMs, sent: within.length, limits: own };
          });
        });
      },
      ({ toMs, sent, limits }, { apart }) => {
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
        return sent > allowed && `${sent} of ${allowed} in the second before ${toMs.toFixed(0)}`;
      },
    ),
  },

  "a call ends by its deadline, and with an error of the contract": {
    "outlived its deadline": check(
      "calls with a deadline",
      ({ calls, absences }) =>
        calls
          .filter(({ deadlineMs, outcome }) => deadlineMs !== undefined && outcome !== "gone")
          .filter((call) => !wasAway(call, absences)),
      ({ id, deadlineMs = 0, endedMs = Infinity }) =>
        endedMs > deadlineMs + 20 && `${id}: ${deadlineMs.toFixed(0)}, ended ${endedMs.toFixed(0)}`,
    ),

    "never answered": check(
      "calls",
      ({ calls }) => calls,
      ({ id, outcome }) => outcome === undefined && id,
    ),

    "not an error of ours": check(
      "errors that were told",
      ({ calls }) => calls.filter(({ error }) => error !== undefined),
      ({ id, error = "" }) => error.startsWith("INTERNAL") && `${id}: ${error}`,
    ),
  },

  "with gateways, store and service in health, what is asked for succeeds, and in time":
    healthChecks,

  "a gateway serves again once a fault is over": {
    "gateway that does not come back": check(
      "gateways",
      ({ gateways }) => gateways,
      ({ name, back }) => !back && name,
    ),
  },
};

const checks = Object.values(promises).flatMap((all) => Object.entries(all));

/** What is wrong with a history. */
export interface Violation {
  readonly check: string;
  readonly found: string;
}

export function violationsOf(history: History): Violation[] {
  return judge(history).violations;
}

/** What all checks found in one history. */
export interface Verdicts {
  readonly violations: Violation[];
  /** How many each check judged, by its name. */
  readonly tried: Readonly<Record<string, number>>;
}

export function judge(history: History): Verdicts {
  const violations: Violation[] = [];
  const tried: Record<string, number> = {};
  for (const [name, { judge }] of checks) {
    const verdict = judge(history);
    tried[name] = verdict.tried;
    for (const found of verdict.found) violations.push({ check: name, found });
  }
  return { violations, tried };
}

/** Whether there is more than one, and which. */
function severalIn(name: string, all: readonly unknown[]): string | false {
  const different = new Set(all);
  return different.size > 1 && `${name}: ${[...different].join(", ")}`;
}

function isUnknown({ callOutcome }: LoggedEvent): boolean {
  return callOutcome === "UNKNOWN";
}

/** A key, with the account that it is used in. */
function keyOf({ account = "", key = "" }: CallRecord): string {
  return `${account} ${key}`;
}

/** Whether what was paid may have this state: all or a part of it was taken back by then. */
function mayBe(state: string, storedMs: number, taken: History["elsewhere"]): boolean {
  return taken.some(({ what, atMs }) => {
    // The clock of a store that took over may be behind.
    if (atMs > storedMs + 50) return false;
    // What was taken back as a whole may be paid again.
    if (what === "cancel" || what === "refund") return true;
    return what === "refundPart" && ["REFUNDED", "PARTIALLY_REFUNDED"].includes(state);
  });
}

/** Whether the caller was answered that the call did nothing, or failed. */
function isDenied({ outcome }: CallRecord): boolean {
  return outcome === "refused" || outcome === "failed";
}

/** Whether a request was sent for a call: calls with one key at one gateway share a request. */
function isOf(post: PostRecord, call: CallRecord, calls: History["calls"]): boolean {
  const { id, key, request, replica, beganMs, endedMs = Infinity } = call;
  if (request !== post.request) return false;
  const made = calls.find((other) => other.id === post.call);
  if (key === undefined || made?.key !== key) return id === post.call;
  // A call that ended before the request left has no part in it.
  return replica === post.replica && beganMs < post.sentMs && post.sentMs < endedMs - wayMs;
}

/** Longest that an answer takes to its caller, in milliseconds. */
const wayMs = 3;

/** Whether a state denies that a request has paid or will pay. */
function isDenial(
  { method, knownMs = Infinity }: PostRecord,
  state: string,
  toldMs: number,
): boolean {
  if (state === "FAILED" || state === "NOT_FOUND") return true;
  // AUTHORIZED is right once a gateway knows that the confirmation is pending; it may learn that
  // during the look-up.
  return method === "ConfirmPayment" && state === "AUTHORIZED" && knownMs > toldMs;
}

/** What all gateways but one may spend in addition when they are cut off from the shared budget. */
function sharesOf(limit: number, gateways: number): number {
  return (gateways - 1) * Math.max(1, Math.floor((limit * 0.8) / gateways));
}

/** How long after the first answer with a new limit all gateways know it, in milliseconds. */
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

function told(event: LoggedEvent & Pick<ShownRecord, "watcher">): string {
  return `${event.watcher}: ${event.externalId} ${event.state} at ${event.cursor}`;
}

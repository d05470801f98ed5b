import type { CallRecord, History, LoggedEvent, PostRecord, ShownRecord } from "./history.ts";

/** What a check found in one history. */
interface Verdict {
  /** How many it judged. */
  readonly tried: number;
  /** What is wrong with some of them. */
  readonly found: readonly string[];
}

interface Check {
  /** What it judges. */
  readonly of: string;
  judge(history: History): Verdict;
}

/**
 * What is promised, and by what each promise is seen to be broken. The checks know what was said, and
 * nothing of the code that said it.
 */
export const promises: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  "while a call that moves money has no understood answer, no second one of its method leaves for its `external_id`":
    {
      "sent while another is open": {
        of: "requests that move money",
        judge: ({ posts }) =>
          judged(posts, (post) =>
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
    },

  "an `Idempotency-Key` means once, and gets the first answer again": {
    "key sent twice": {
      of: "keys of which a request left",
      judge({ posts, calls }) {
        const keyed = new Set(calls.flatMap(({ key, request }) => (key ? [request] : [])));
        const sent = posts.filter(({ request, tooMany }) => keyed.has(request) && !tooMany);
        return judged(groupsOf(sent, ({ request }) => request).values(), (all) =>
          all.length > 1 ? [all.map(nameOf).join(", ")] : [],
        );
      },
    },

    "one key, two answers": {
      of: "keys that were answered",
      judge({ calls }) {
        const answered = calls.filter(({ key, paymentId }) => key !== undefined && paymentId);
        return judged(
          groupsOf(answered, ({ key }) => key),
          ([key, all]) => {
            const payments = new Set(all.map(({ paymentId }) => paymentId));
            return payments.size > 1 ? [`${key}: ${[...payments].join(", ")}`] : [];
          },
        );
      },
    },

    "a key's answer is forgotten": {
      of: "answered keys that are sent once more in the end",
      judge: ({ calls }) =>
        judged(
          calls.filter(({ id }) => id.endsWith("!")),
          ({ id, outcome, error }) =>
            outcome === "unknown" || outcome === "refused" ? [`${id}: ${error}`] : [],
        ),
    },
  },

  "what was charged is not told as failed, by the call, by `GetPayment`, or by the event that a lost call was not done; nor what was not charged as paid":
    {
      "charged, told as failed": {
        of: "requests that were charged",
        judge: ({ posts, calls }) =>
          judged(
            posts.filter(({ charged }) => charged),
            (post) => {
              const all = calls.filter(({ request }) => request === post.request);
              // Where nobody was told otherwise, it does not matter for which of them it was sent.
              const denied = all.every(isDenied)
                ? all.slice(-1)
                : calls.filter((call) => isDenied(call) && isOf(post, call, calls));
              return denied.map(
                ({ id, error, outcome }) => `${nameOf(post)}: ${id} ${error ?? outcome}`,
              );
            },
          ),
      },

      "charged, shown as failed": {
        of: "answers of GetPayment and GetPayout in between",
        judge: ({ posts, looks }) =>
          judged(looks, ({ externalId, askedMs, atMs, state }) =>
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
      },

      "charged, told as not done": {
        of: "events that a call was not done",
        judge({ posts, calls, log }) {
          const isAlone = (post: PostRecord, storedMs: number) =>
            calls.every(
              ({ id, externalId, beganMs }) =>
                id === post.call || externalId !== post.externalId || beganMs > storedMs,
            );
          return judged(
            log.filter(({ callOutcome }) => callOutcome === "NOT_DONE"),
            ({ externalId, storedMs }) =>
              posts
                .filter((post) => post.charged && post.externalId === externalId)
                .filter((post) => {
                  const own = calls.find(({ id }) => id === post.call);
                  return own && own.beganMs < storedMs && storedMs < post.arrivedMs;
                })
                // Of several calls it is not told which one it is about.
                .filter((post) => isAlone(post, storedMs))
                .map((post) => `${nameOf(post)}: not done at ${storedMs}`),
          );
        },
      },

      "told as paid, not charged": {
        of: "answers that it is paid",
        judge({ posts, calls }) {
          const paid = posts.filter(({ charged }) => charged);
          const charged = new Set(paid.map(({ paymentId }) => paymentId));
          return judged(
            calls.filter(({ outcome }) => outcome === "paid"),
            ({ id, paymentId }) => (charged.has(paymentId) ? [] : [`${id}: ${paymentId}`]),
          );
        },
      },
    },

  "an answer to another request is not taken for this one's": {
    "told of another payment": {
      of: "answers with a payment",
      judge: ({ posts, calls }) =>
        judged(
          calls.filter(({ paymentId }) => paymentId),
          ({ id, paymentId, externalId }) =>
            posts.some((post) => post.paymentId === paymentId && post.externalId === externalId)
              ? []
              : [`${id}: ${paymentId}`],
        ),
    },
  },

  "what was acknowledged is in the log, once, and a callback is acknowledged in the end": {
    "acknowledged, not in the log once": {
      of: "callbacks that were acknowledged",
      judge({ callbacks, log }) {
        const stored = groupsOf(log, ({ callback }) => callback);
        return judged(
          callbacks.filter(({ answers }) => answers.some(({ status }) => status === 200)),
          ({ id }) => {
            const times = stored.get(id)?.length ?? 0;
            return times === 1 ? [] : [`${id}: ${times} times`];
          },
        );
      },
    },

    "one callback under two cursors": {
      of: "callbacks that were stored or shown",
      judge({ log, shown }) {
        // The current state is told with the place that the log has come to.
        const events = [...log, ...shown.filter(({ isFirst }) => !isFirst)];
        const told = events.filter(({ callback }) => callback !== undefined);
        return judged(
          groupsOf(told, ({ callback }) => callback),
          ([callback, all]) => {
            const cursors = new Set(all.map(({ cursor }) => cursor));
            return cursors.size > 1 ? [`${callback}: ${[...cursors].join(", ")}`] : [];
          },
        );
      },
    },

    "never acknowledged": {
      of: "callbacks that were sent",
      judge: ({ callbacks }) =>
        judged(
          callbacks.filter(({ answers }) => answers.length > 0),
          ({ id, answers }) =>
            answers.every(({ status }) => status !== 200)
              ? [`${id}: ${answers.map(({ status }) => status).join(", ")}`]
              : [],
        ),
    },
  },

  "a watcher sees each event of its payment once, in order, without a gap, over any number of cuts":
    {
      "shown twice or out of order": {
        of: "events that were shown",
        judge({ shown }) {
          const last = new Map<string, string>();
          return judged(shown, (event) => {
            const { watcher, cursor } = event;
            const before = last.get(watcher) ?? "";
            last.set(watcher, cursor);
            return cursor <= before ? [told(event)] : [];
          });
        },
      },

      "left out": {
        of: "events that a watcher was to see",
        judge({ shown, log, watchers }) {
          const seenBy = groupsOf(shown, ({ watcher }) => watcher);
          const due = watchers.flatMap(({ id, externalId: about, from }) => {
            if (from === undefined) return [];
            const seen = new Set(seenBy.get(id)?.map(({ cursor }) => cursor));
            return log
              .filter(
                ({ externalId, cursor }) => (about ?? externalId) === externalId && cursor > from,
              )
              .map((event) => ({ ...event, id, isSeen: seen.has(event.cursor) }));
          });
          return judged(due, ({ id, externalId, state, cursor, isSeen }) =>
            isSeen ? [] : [`${id}: ${externalId} ${state} at ${cursor}`],
          );
        },
      },

      "shown, not in the log": {
        of: "events that were shown",
        judge({ shown, log }) {
          const cursors = new Set(log.map(({ cursor }) => cursor));
          return judged(shown, (event) => (cursors.has(event.cursor) ? [] : [told(event)]));
        },
      },

      "shown to who asked for another": {
        of: "events shown to who asked for one payment",
        judge({ shown, watchers }) {
          const abouts = new Map(watchers.map(({ id, externalId }) => [id, externalId]));
          return judged(
            shown.filter(({ watcher }) => abouts.get(watcher) !== undefined),
            (event) => (abouts.get(event.watcher) === event.externalId ? [] : [told(event)]),
          );
        },
      },

      "valid cursor refused": {
        of: "cursors that a watcher came back with",
        judge: ({ resumed, log }) =>
          judged(resumed, ({ watcher, cursor, refused }) =>
            refused && log.some((event) => event.cursor === cursor)
              ? [`${watcher}: ${cursor}`]
              : [],
          ),
      },
    },

  "`state` does not leave `PAID`, and is in the end what the ledger says": {
    "paid, then not": {
      of: "payments that the log calls paid",
      judge: ({ log }) =>
        judged(
          [...groupsOf(log, ({ externalId }) => externalId)]
            .map(([externalId, all]) => {
              const paid = all.findIndex(({ state }) => state === "PAID");
              return { externalId, paid, all };
            })
            .filter(({ paid }) => paid >= 0),
          ({ externalId, paid, all }) => {
            const later = all.slice(paid).find(({ state }) => state !== "PAID");
            return later ? [`${externalId}: ${later.state} at ${later.cursor}`] : [];
          },
        ),
    },

    "not what the ledger says": {
      of: "payments that are known in the end",
      judge: ({ ends }) =>
        judged(
          ends.filter(({ unknown, needsOperator }) => !unknown && !needsOperator),
          ({ externalId, state, expected }) =>
            // A refusal that is told to its caller alone leaves nothing behind.
            state === expected || (state === "NOT_FOUND" && expected === "FAILED")
              ? []
              : [`${externalId}: ${state}, should be ${expected}`],
        ),
    },
  },

  "an unknown outcome is settled, or flagged for an operator": {
    "published as unknown, and nothing since": {
      of: "payments with an event that a call's outcome is unknown",
      judge({ log }) {
        const outcomes = log.filter(({ callOutcome }) => callOutcome !== undefined);
        const unknown = ({ callOutcome }: LoggedEvent) => callOutcome === "UNKNOWN";
        return judged(
          [...groupsOf(outcomes, ({ externalId }) => externalId)].filter(([, all]) =>
            all.some(unknown),
          ),
          // Which call an event is about is not shown: as many must have ended as are unknown.
          ([externalId, all]) => {
            const open = all.filter(unknown).length;
            return 2 * open > all.length
              ? [`${externalId}: ${open} unknown, ${all.length - open} ended`]
              : [];
          },
        );
      },
    },

    "not settled, nor flagged": {
      of: "payments that are asked for in the end",
      judge: ({ ends }) =>
        judged(ends, ({ externalId, state, unknown, needsOperator }) =>
          unknown && !needsOperator ? [`${externalId}: ${state}`] : [],
        ),
    },
  },

  "the service's budget per second holds": {
    "over the budget": {
      of: "requests",
      judge({ requests, limits, absences, apart }) {
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
        return judged(times.entries(), ([at, toMs]) => {
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
    },
  },

  "a call ends by its deadline, and with an error of the contract": {
    "outlived its deadline": {
      of: "calls with a deadline",
      judge: ({ calls, absences }) =>
        judged(
          calls
            .filter(({ deadlineMs, outcome }) => deadlineMs !== undefined && outcome !== "gone")
            .filter((call) => !wasAway(call, absences)),
          ({ id, deadlineMs = 0, endedMs = Infinity }) =>
            endedMs > deadlineMs + 20
              ? [`${id}: ${deadlineMs.toFixed(0)}, ended ${endedMs.toFixed(0)}`]
              : [],
        ),
    },

    "never answered": {
      of: "calls",
      judge: ({ calls }) => judged(calls, ({ id, outcome }) => (outcome === undefined ? [id] : [])),
    },

    "not an error of ours": {
      of: "errors that were told",
      judge: ({ calls }) =>
        judged(
          calls.filter(({ error }) => error !== undefined),
          ({ id, error }) => (error?.startsWith("INTERNAL") ? [`${id}: ${error}`] : []),
        ),
    },
  },

  "a gateway serves again once a fault is over": {
    "gateway that does not come back": {
      of: "gateways",
      judge: ({ gateways }) => judged(gateways, ({ name, back }) => (back ? [] : [name])),
    },
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
  for (const [check, { judge }] of checks) {
    const verdict = judge(history);
    tried[check] = verdict.tried;
    for (const found of verdict.found) violations.push({ check, found });
  }
  return { violations, tried };
}

/** Looks at one after another. */
function judged<T>(all: Iterable<T>, wrong: (one: T) => readonly string[]): Verdict {
  let tried = 0;
  const found: string[] = [];
  for (const one of all) {
    tried++;
    found.push(...wrong(one));
  }
  return { tried, found };
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

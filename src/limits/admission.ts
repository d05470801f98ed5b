import { performance } from "node:perf_hooks";

/**
 * What a call is to the limits: one that moves money is refused last. `unknown` is a call whose body
 * will tell: it gets in as if it moved money, and its place tells whether it must.
 */
export type CallKind = "other" | "money" | "unknown";

/** One call's place among those in flight. */
export interface Place {
  /** The call got in only because it moves money, or may. */
  readonly moneyOnly: boolean;
  /** Gives the place back; once is enough. */
  leave(): void;
  /** The call waits for its client, whose time is no work of ours: it does not count meanwhile. */
  suspend(): void;
  resume(): void;
}

/** Decides whether this process takes on another call, before anything is spent on it. */
export interface Admission {
  /** Undefined when the call is refused. */
  enter(kind: CallKind): Place | undefined;
  readonly inFlight: number;
}

export interface AdmissionOptions {
  /** Calls in flight at once; `undefined` takes on all. */
  readonly maxCalls: number | undefined;
  readonly clock?: Clock;
}

/** What the event loop of the process tells. */
export interface Clock {
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
  /** Calls back when the loop has dispatched what was ready. */
  readonly afterTurn: (callback: () => void) => void;
  /** Milliseconds since the process began in which the loop worked, and in which it waited. */
  readonly utilization: () => { readonly active: number; readonly idle: number };
}

/** Share of `maxCalls` that calls which move no money may fill. */
const shareOfOthers = 0.8;
/** How far into a turn of the loop a call may be reached when the loop has no time left. */
const patienceMs = { other: 20, money: 50 } as const;
const windowMs = 2_000;
const saturatedFrom = 0.95;

/**
 * Two limits. Calls in flight bound memory and what waits behind a slow upstream. The event loop
 * bounds work: when it has had no idle time for two seconds, the process is at its peak, and each turn
 * takes on only the calls that it reaches within `patienceMs`, so that turns stay short, for
 * callbacks and refusals as well. Both refuse other calls before those that move money. The second
 * needs no number of the operator's: it follows what calls cost on this machine, and a burst that is
 * over by then is served whole.
 */
export function createAdmission({ maxCalls, clock = processClock }: AdmissionOptions): Admission {
  let inFlight = 0;
  const saturated = createSaturation(clock);
  const turnAgeMs = createTurn(clock);

  /** Which calls are taken on now. */
  function admitted(): "none" | "money" | "all" {
    if (maxCalls === undefined) return "all";
    const waitedMs = saturated() ? turnAgeMs() : 0;
    if (inFlight >= maxCalls || waitedMs > patienceMs.money) return "none";
    if (inFlight >= maxCalls * shareOfOthers || waitedMs > patienceMs.other) return "money";
    return "all";
  }

  return {
    enter(kind) {
      const now = admitted();
      if (now === "none" || (now === "money" && kind === "other")) return undefined;
      inFlight += 1;
      let counted = true;
      let left = false;
      const suspend = () => {
        if (counted) inFlight -= 1;
        counted = false;
      };
      return {
        moneyOnly: now === "money",
        suspend,
        resume() {
          if (counted || left) return;
          counted = true;
          inFlight += 1;
        },
        leave() {
          left = true;
          suspend();
        },
      };
    },
    get inFlight() {
      return inFlight;
    },
  };
}

/**
 * Whether the loop was busy all through the last window. Windows begin with a call, and are measured
 * when asked: it costs nothing at rest, and what a process does before its first call is no load.
 */
function createSaturation({ now, utilization }: Clock): () => boolean {
  let last: { readonly at: number; readonly active: number; readonly idle: number } | undefined;
  let saturated = false;
  return () => {
    const at = now();
    const elapsedMs = last ? at - last.at : Number.POSITIVE_INFINITY;
    if (elapsedMs < windowMs) return saturated;
    const current = utilization();
    const active = current.active - (last?.active ?? 0);
    const idle = current.idle - (last?.idle ?? 0);
    // A window that nobody looked into for long tells of other work than calls.
    saturated = elapsedMs < 2 * windowMs && active / (active + idle) >= saturatedFrom;
    last = { at, active: current.active, idle: current.idle };
    return saturated;
  };
}

/** How long the loop has been at the calls that it found ready together. */
function createTurn({ now, afterTurn }: Clock): () => number {
  let beganAt: number | undefined;
  return () => {
    if (beganAt !== undefined) return now() - beganAt;
    beganAt = now();
    afterTurn(() => {
      beganAt = undefined;
    });
    return 0;
  };
}

/** A place that nothing bounds. */
export const freePlace: Place = { moneyOnly: false, leave() {}, suspend() {}, resume() {} };

const processClock: Clock = {
  now: () => performance.now(),
  afterTurn: (callback) => void setImmediate(callback),
  utilization: () => performance.eventLoopUtilization(),
};

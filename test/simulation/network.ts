import { StoreUnavailable } from "../../src/errors.ts";
import type { StoreTrouble } from "./plan.ts";
import type { Recorder } from "./recorder.ts";
import { asNobody, currentProcess, type Process, type Scheduler } from "./scheduler.ts";

interface Trouble {
  readonly kind: StoreTrouble;
  /** Absent: all replicas. */
  readonly replica: string | undefined;
  readonly share: number;
  readonly untilMs: number;
}

/** When the last message of a connection arrives, each way, by the clock of the simulation. */
export interface Lane {
  thereMs: number;
  backMs: number;
}

interface Message<T> {
  /** It must not be delivered twice. */
  readonly once: boolean;
  /** Absent: messages may overtake each other. */
  readonly lane?: Lane;
  /** Runs the request in the store. */
  obey(): Promise<T>;
  answered(outcome: T): void;
  /** Called when the connection breaks; the store may have run the request all the same. */
  cut(): void;
}

export type StoreNetwork = ReturnType<typeof createStoreNetwork>;

/**
 * The network between the replicas and the store. A request may be late, lost, or delivered twice,
 * and its answer may be lost; a connection may be cut, and the store may stall.
 */
export function createStoreNetwork(scheduler: Scheduler, recorder: Recorder) {
  let troubles: Trouble[] = [];
  const cuts = new Set<() => void>();
  let heldUpCount = 0;
  const latencyMs = () => scheduler.random.between(0.1, usualMs);

  /**
   * Sends a request to the store and returns the answer.
   * @throws GatewayError UNAVAILABLE if no answer arrives in time; the store may have run the
   * request
   */
  function ask<T>(what: string, work: () => Promise<T>): Promise<T> {
    const process = currentProcess() as Process;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const fail = (why: string) =>
      reject(new StoreUnavailable(new Error(why), { away: false, broken: true }));
    if (process.isDead) {
      fail("the process is dead");
      return promise;
    }
    const end = (settle: () => void) => {
      stopDeath();
      stopTimeout();
      settle();
    };
    const stopDeath = process.onDeath(() => fail("the process died"));
    const late = () => end(() => fail("no answer"));
    const stopTimeout = scheduler.after(answerMs, late, process);
    pass(what, process, {
      // `follow` opens a connection that delivers events: it must not be opened twice.
      once: what === "follow",
      obey: () =>
        work().then(
          (value) => () => resolve(value),
          (error) => () => reject(error),
        ),
      answered: end,
      cut: () => end(() => fail("the connection was cut")),
    });
    return promise;
  }

  /** Carries a message to the store, and its outcome back. */
  function pass<T>(what: string, process: Process, message: Message<T>): void {
    const { once, lane, obey, answered, cut } = message;
    const found = troubleOf(process);
    const trouble = found === "doubles" && once ? undefined : found;
    /** On a connection no message overtakes an earlier one. */
    const inLane = (way: keyof Lane, ms: number) => {
      if (!lane) return ms;
      lane[way] = Math.max(lane[way], scheduler.nowMs + ms);
      return lane[way] - scheduler.nowMs;
    };
    const arrive = (ms: number, answers: boolean, isCopy = false) => {
      const onWayMs = ms + stalledMs(process);
      const work = async () => {
        const outcome = await obey();
        heldUpCount -= heldUp;
        if (!answers) return;
        scheduler.after(inLane("backMs", latencyMs()), () => answered(outcome), process);
      };
      const atMs = isCopy ? onWayMs : inLane("thereMs", onWayMs);
      const heldUp = Number(atMs > usualMs);
      heldUpCount += heldUp;
      scheduler.after(atMs, () => asNobody(() => void work()));
    };
    if (trouble) recorder.line(process.name, "store", `${what} (${trouble})`);
    switch (trouble) {
      case "losesRequests":
        return;
      case "losesAnswers":
        arrive(latencyMs(), false);
        return;
      case "late":
        arrive(scheduler.random.between(100, 4_000), true);
        return;
      case "doubles":
        arrive(latencyMs(), true);
        arrive(scheduler.random.between(1, 2_000), false, true);
        return;
      case "cuts": {
        const isHeard = scheduler.random.chance(0.5);
        if (isHeard) arrive(latencyMs(), false);
        scheduler.after(2 * latencyMs(), cut, process);
        return;
      }
      default:
        arrive(latencyMs(), true);
    }
  }

  /** The trouble that the next message of a process meets, if any. */
  function troubleOf({ name }: Process): Exclude<StoreTrouble, "stalls"> | undefined {
    if (troubles.length === 0) return undefined;
    const { nowMs, random } = scheduler;
    troubles = troubles.filter(({ untilMs }) => untilMs > nowMs);
    for (const { kind, replica, share } of troubles) {
      if (kind === "stalls" || (replica !== undefined && replica !== name)) continue;
      if (random.chance(share)) return kind;
    }
    return undefined;
  }

  /** How long a stalled store delays a message of a process. */
  function stalledMs({ name }: Process): number {
    const { nowMs } = scheduler;
    const ends = troubles
      .filter(({ kind, replica }) => kind === "stalls" && (replica ?? name) === name)
      .map(({ untilMs }) => untilMs - nowMs);
    return Math.max(0, ...ends);
  }

  return {
    /** Late messages that the store has yet to run, those of processes that died included. */
    get heldUp() {
      return heldUpCount;
    },
    begin(trouble: Trouble) {
      troubles.push(trouble);
      if (trouble.kind === "cuts") for (const cut of [...cuts]) cut();
    },
    /** Calls `hear` when connections are cut. @returns a function that removes `hear` */
    onCut(hear: () => void) {
      cuts.add(hear);
      return () => cuts.delete(hear);
    },
    ...{ latencyMs, ask, pass, troubleOf, stalledMs },
  };
}

/** How long a gateway waits for an answer of the store, in milliseconds. */
const answerMs = 500;
/** Longest that a message takes without trouble, in milliseconds. */
const usualMs = 2;

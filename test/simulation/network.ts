import { StoreUnavailable } from "../../src/redis/ask.ts";
import type { StoreTrouble } from "./plan.ts";
import type { Recorder } from "./recorder.ts";
import { asNobody, currentProcess, type Process, type Scheduler } from "./scheduler.ts";

interface Trouble {
  readonly kind: StoreTrouble;
  /** Absent: of all. */
  readonly replica: string | undefined;
  readonly share: number;
  readonly untilMs: number;
}

/**
 * The way between the replicas and the store. A message may be late, or lost before it is heard or
 * after it was obeyed; it may be heard twice; a connection may be cut, and the store stand still.
 */
export class StoreNetwork {
  readonly #scheduler: Scheduler;
  readonly #recorder: Recorder;
  #troubles: Trouble[] = [];
  readonly #cut = new Set<() => void>();

  constructor(scheduler: Scheduler, recorder: Recorder) {
    this.#scheduler = scheduler;
    this.#recorder = recorder;
  }

  begin(trouble: Trouble): void {
    this.#troubles.push(trouble);
    if (trouble.kind !== "cuts") return;
    for (const cut of [...this.#cut]) cut();
  }

  /** Hears when connections are cut. @returns what takes it back */
  onCut(hear: () => void): () => void {
    this.#cut.add(hear);
    return () => this.#cut.delete(hear);
  }

  latencyMs(): number {
    return this.#scheduler.random.between(0.1, 2);
  }

  /**
   * One question to the store, and its answer.
   * @throws GatewayError UNAVAILABLE when none came in time: it may have been obeyed all the same
   */
  ask<T>(what: string, work: () => T | Promise<T>, answerMs = 500): Promise<T> {
    const scheduler = this.#scheduler;
    const process = currentProcess() as Process;
    return new Promise((resolve, reject) => {
      const fail = (why: string) =>
        reject(new StoreUnavailable(new Error(why), { away: false, broken: true }));
      if (process.isDead) return fail("the process is dead");
      const stopDeath = process.onDeath(() => fail("the process died"));
      const settle = (run: () => void) => {
        stopDeath();
        run();
      };
      const cancelTimeout = scheduler.after(
        answerMs,
        () => settle(() => fail("no answer")),
        process,
      );
      const found = this.troubleOf(process);
      // A connection that delivers events is opened once.
      const trouble = found === "doubles" && what === "follow" ? undefined : found;
      const tell = (text: string) =>
        this.#recorder.line(process.name, "store", trouble ? `${text} (${trouble})` : text);
      const obey = async (answers: boolean) => {
        let outcome: () => void;
        try {
          const value = await work();
          outcome = () => resolve(value);
        } catch (error) {
          outcome = () => reject(error);
        }
        if (!answers) return;
        scheduler.after(
          this.latencyMs(),
          () => {
            cancelTimeout();
            settle(outcome);
          },
          process,
        );
      };
      const arrive = (ms: number, answers: boolean) =>
        void scheduler.after(ms + this.stalledMs(process), () =>
          asNobody(() => void obey(answers)),
        );
      if (trouble) tell(what);
      switch (trouble) {
        case "losesRequests":
          return;
        case "losesAnswers":
          return arrive(this.latencyMs(), false);
        case "late":
          return arrive(scheduler.random.between(100, 4_000), true);
        case "doubles":
          arrive(this.latencyMs(), true);
          return arrive(scheduler.random.between(1, 2_000), false);
        case "cuts": {
          const isHeard = scheduler.random.chance(0.5);
          if (isHeard) arrive(this.latencyMs(), false);
          scheduler.after(
            2 * this.latencyMs(),
            () => {
              cancelTimeout();
              settle(() => fail("the connection was cut"));
            },
            process,
          );
          return;
        }
        default:
          return arrive(this.latencyMs(), true);
      }
    });
  }

  /** What befalls the next message of a process. */
  troubleOf({ name }: Process): Exclude<StoreTrouble, "stalls"> | undefined {
    if (this.#troubles.length === 0) return undefined;
    const { nowMs, random } = this.#scheduler;
    this.#troubles = this.#troubles.filter(({ untilMs }) => untilMs > nowMs);
    for (const { kind, replica, share } of this.#troubles) {
      if (kind === "stalls" || (replica !== undefined && replica !== name)) continue;
      if (random.chance(share)) return kind;
    }
    return undefined;
  }

  /** A store that stands still obeys when it goes on. */
  stalledMs({ name }: Process): number {
    const { nowMs } = this.#scheduler;
    const ends = this.#troubles
      .filter(({ kind, replica }) => kind === "stalls" && (replica ?? name) === name)
      .map(({ untilMs }) => untilMs - nowMs);
    return Math.max(0, ...ends);
  }
}

import type { Replication } from "../plan.ts";
import { epochMs, type Scheduler } from "../scheduler.ts";
import { type Answer, type Command, refill, run, shaOf } from "./real-redis.ts";

/** A connection that receives what is published on a channel. */
export interface Subscriber {
  hear(channel: string, message: string): void;
}

/**
 * A simulated Redis: a real server runs its commands at the time of the history, and a journal
 * stands for a replica that lags behind.
 */
export class SimulatedServer {
  readonly #scheduler: Scheduler;
  readonly #replication: Replication | undefined;
  /** All commands since the beginning, and when they reach the replica. */
  #journal: { readonly atUs: number; readonly commands: Command[]; readonly reachesMs: number }[] =
    [];
  /** Until then nothing reaches the replica. */
  #heldUntilMs = 0;
  /** The texts of the scripts that the server has, by digest. */
  readonly #scripts = new Map<string, string>();
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  readonly #connections = new Set<() => void>();
  #aheadMs = 0;

  constructor(scheduler: Scheduler, replication: Replication | undefined) {
    this.#scheduler = scheduler;
    this.#replication = replication;
  }

  /** Runs the commands that one connection sends in one piece. */
  async obey(commands: readonly Command[], from?: Subscriber): Promise<Answer[]> {
    const answers: Answer[] = [];
    const asked: Command[] = [];
    for (const command of commands) {
      const known = this.#own(command, from) ?? this.#byText(command);
      if ("name" in known) asked.push(known);
      answers.push("name" in known ? [null, undefined] : known);
    }
    let waitMs = 0;
    if (asked.length > 0) {
      const atUs = this.#nowUs;
      if (this.#replication) {
        this.#journal.push({ atUs, commands: asked, reachesMs: this.#reachesMs });
      }
      const done = await this.#scheduler.outside(run(atUs, asked));
      let at = 0;
      for (const [place, [, result]] of answers.entries()) {
        if (result === undefined) answers[place] = done.answers[at++] as Answer;
      }
      for (const [channel, message] of done.published) {
        for (const each of this.#subscribers.get(channel) ?? []) each.hear(channel, message);
      }
    }
    for (const [at, { name, args }] of commands.entries()) {
      if (name !== "wait") continue;
      const [replicas, ms] = args.map(Number) as [number, number];
      const reachesMs = this.#replication && replicas === 1 ? this.#journal.at(-1)?.reachesMs : 0;
      const leftMs = Math.max(0, (reachesMs ?? Infinity) - this.#scheduler.nowMs);
      waitMs += Math.min(leftMs, ms);
      answers[at] = [null, replicas === 1 && leftMs <= ms ? 1 : 0];
    }
    if (waitMs > 0) await this.#scheduler.wait(waitMs);
    return answers;
  }

  /**
   * Calls `hear` when a failover closes all connections. @returns a function that removes `hear`
   */
  onGone(hear: () => void): () => void {
    this.#connections.add(hear);
    return () => this.#connections.delete(hear);
  }

  unsubscribe(from: Subscriber): void {
    for (const all of this.#subscribers.values()) all.delete(from);
  }

  /** The replica takes over, with its clock `aheadMs` ahead: what had not reached it is lost. */
  async failOver(aheadMs: number): Promise<void> {
    const { nowMs } = this.#scheduler;
    this.#journal = this.#journal.filter(({ reachesMs }) => reachesMs <= nowMs);
    this.#scripts.clear();
    this.#subscribers.clear();
    this.#aheadMs = aheadMs;
    await this.#scheduler.outside(
      refill(this.#journal.map(({ atUs, commands }) => [atUs, commands])),
    );
    for (const hear of [...this.#connections]) hear();
  }

  holdReplica(forMs: number): void {
    this.#heldUntilMs = Math.max(this.#heldUntilMs, this.#scheduler.nowMs + forMs);
  }

  /** When a command that runs now reaches the replica; commands keep their order. */
  get #reachesMs(): number {
    const leavesMs = Math.max(this.#scheduler.nowMs, this.#heldUntilMs);
    const { lagMs = 0 } = this.#replication ?? {};
    return Math.max(leavesMs + lagMs, this.#journal.at(-1)?.reachesMs ?? 0);
  }

  get #nowUs(): number {
    return Math.floor((epochMs + this.#scheduler.nowMs + this.#aheadMs) * 1_000);
  }

  /** Answers commands that need no data; undefined for all others. */
  #own({ name, args }: Command, from: Subscriber | undefined): Answer | undefined {
    if (name === "wait") return [null, 0];
    if (name !== "subscribe" && name !== "unsubscribe") return undefined;
    for (const channel of args.map(String)) {
      const all = this.#subscribers.get(channel) ?? new Set();
      this.#subscribers.set(channel, all);
      if (from && name === "subscribe") all.add(from);
      else if (from) all.delete(from);
    }
    return [null, args.length];
  }

  /** Replaces the digest of a script by its text; NOSCRIPT if the server does not know it. */
  #byText(command: Command): Command | Answer {
    const [script, ...rest] = command.args;
    if (command.name === "eval") this.#scripts.set(shaOf(String(script)), String(script));
    if (command.name !== "evalsha") return command;
    const lua = this.#scripts.get(String(script));
    if (lua !== undefined) return { ...command, name: "eval", args: [lua, ...rest] };
    const unknown = new Error("NOSCRIPT No matching script. Please use EVAL.");
    return [Object.assign(unknown, { name: "ReplyError" }), null];
  }
}

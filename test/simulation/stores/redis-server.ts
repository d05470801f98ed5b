import type { ServerAddress } from "../../../src/redis/link.ts";
import type { SentinelView } from "../../../src/redis/sentinels.ts";
import type { Replication } from "../plan.ts";
import { epochMs, type Scheduler } from "../scheduler.ts";
import { type Answer, type Command, refill, run, shaOf } from "./real-redis.ts";

/** A connection that receives what is published on a channel. */
export interface Subscriber {
  hear(channel: string, message: string): void;
}

/** A replica of the server: a place in each entry of the journal. */
interface Replica {
  address: ServerAddress;
  /** Until then nothing reaches it. */
  heldUntilMs: number;
  /** When the primary lists it: an old primary comes back as a replica some time later. */
  joinsMs: number;
}

/** How many Sentinels there are if several replicas may be promoted. */
export const sentinelCount = 3;

/**
 * A simulated Redis: a real server runs its commands at the time of the history, and a journal
 * stands for replicas that lag behind. If there are several, Sentinels promote any one of them.
 */
export class SimulatedServer {
  readonly #scheduler: Scheduler;
  readonly #replication: Replication | undefined;
  /** All commands since the beginning, and when they reach each replica. */
  #journal: {
    readonly atUs: number;
    readonly commands: Command[];
    readonly reachesMs: number[];
  }[] = [];
  readonly #replicas: Replica[];
  #address = "redis:1";
  #epoch = 0;
  /** What each Sentinel knows of the primary. */
  readonly #known: { primary: ServerAddress; epoch: number }[];
  /** The texts of the scripts that the server has, by digest. */
  readonly #scripts = new Map<string, string>();
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  readonly #connections = new Set<() => void>();
  #aheadMs = 0;
  /** When a writer last waited for replicas. */
  waitedMs = -Infinity;

  constructor(scheduler: Scheduler, replication: Replication | undefined) {
    this.#scheduler = scheduler;
    this.#replication = replication;
    const { replicas = 1 } = replication ?? { replicas: 0 };
    this.#replicas = Array.from({ length: replicas }, (_, at) => ({
      ...{ address: `redis:${at + 2}`, heldUntilMs: 0, joinsMs: 0 },
    }));
    this.#known = Array.from({ length: sentinelCount }, () => ({
      ...{ primary: this.#address, epoch: 0 },
    }));
  }

  get address(): ServerAddress {
    return this.#address;
  }

  /** What a Sentinel tells. */
  view(sentinel: number): SentinelView {
    const { primary = "", epoch = 0 } = this.#known[sentinel] ?? {};
    const all = [this.#address, ...this.#replicas.map(({ address }) => address)];
    return {
      ...{ primary, epoch, sentinels: sentinelCount, failingOver: false },
      replicas: all
        .filter((address) => address !== primary)
        .map((address) => ({ address, down: false, priority: 100, offset: 0 })),
    };
  }

  /** Runs the commands that one connection sends in one piece. */
  async obey(commands: readonly Command[], from?: Subscriber): Promise<Answer[]> {
    const known = commands.map((command) => this.#own(command, from) ?? this.#byText(command));
    const asked = known.filter((one) => "name" in one);
    const answered = asked.length === 0 ? [] : await this.#run(asked);
    const answers: Answer[] = [];
    for (const [at, { name, args }] of commands.entries()) {
      const one = known[at]!;
      if (name === "role") answers.push([null, this.#role()]);
      else if (name === "wait")
        answers.push([null, await this.#wait(Number(args[0]), Number(args[1]))]);
      else answers.push("name" in one ? answered.shift()! : one);
    }
    return answers;
  }

  /** Runs commands on the real server, and delivers what they publish. */
  async #run(commands: Command[]): Promise<Answer[]> {
    const atUs = this.#nowUs;
    if (this.#replication) {
      const reachesMs = this.#replicas.map((_, slot) => this.#reachesMs(slot));
      this.#journal.push({ atUs, commands, reachesMs });
    }
    const { answers, published } = await this.#scheduler.outside(run(atUs, commands));
    for (const [channel, message] of published) {
      for (const each of this.#subscribers.get(channel) ?? []) each.hear(channel, message);
    }
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

  /** A replica takes over, with its clock `aheadMs` ahead: what had not reached it is lost. */
  async failOver(aheadMs: number): Promise<void> {
    const { nowMs, random } = this.#scheduler;
    const slot = this.#replicas.length > 1 ? random.whole(0, this.#replicas.length - 1) : 0;
    this.#journal = this.#journal.filter(({ reachesMs }) => (reachesMs[slot] ?? 0) <= nowMs);
    const promoted = this.#replicas[slot];
    if (promoted) {
      // The old primary wrote all that the new one has. It comes back as a replica some time later.
      [promoted.address, this.#address] = [this.#address, promoted.address];
      const { lagMs = 0 } = this.#replication ?? {};
      if (this.#replicas.length > 1) {
        promoted.joinsMs = nowMs + lagMs + random.between(0, 1_000);
        for (const { reachesMs } of this.#journal) reachesMs[slot] = nowMs;
      }
    }
    this.#tellSentinels();
    this.#scripts.clear();
    this.#subscribers.clear();
    this.#aheadMs = aheadMs;
    await this.#scheduler.outside(
      refill(this.#journal.map(({ atUs, commands }) => [atUs, commands])),
    );
    for (const hear of [...this.#connections]) hear();
  }

  /** The one that led the failover knows of it at once. */
  #tellSentinels(): void {
    const { random } = this.#scheduler;
    const news = { primary: this.#address, epoch: ++this.#epoch };
    if (this.#replicas.length < 2) return;
    for (const sentinel of this.#known.keys()) {
      const inMs = sentinel === 0 ? 0 : random.between(0, 500);
      this.#scheduler.after(inMs, () => {
        if ((this.#known[sentinel]?.epoch ?? 0) < news.epoch) this.#known[sentinel] = news;
      });
    }
  }

  /** Moves the watermark of a log, up to which events are shown, to its end. */
  async showAll(log: string): Promise<void> {
    const [[, tail]] = (await this.obey([{ name: "hget", args: [log, "tail"] }])) as [Answer];
    if (tail) await this.obey([{ name: "hset", args: [log, "mark", String(tail)] }]);
  }

  holdReplica(forMs: number): void {
    const { nowMs, random } = this.#scheduler;
    const replica = this.#replicas.length > 1 ? random.pick(this.#replicas) : this.#replicas[0];
    if (replica) replica.heldUntilMs = Math.max(replica.heldUntilMs, nowMs + forMs);
  }

  /** When a command that runs now reaches a replica; commands keep their order. */
  #reachesMs(slot: number): number {
    const { nowMs, random } = this.#scheduler;
    const { heldUntilMs = 0, joinsMs = 0 } = this.#replicas[slot] ?? {};
    const leavesMs = Math.max(nowMs, heldUntilMs, joinsMs);
    const { lagMs = 0 } = this.#replication ?? {};
    const share = slot === 0 ? 1 : random.between(0.3, 1);
    return Math.max(leavesMs + lagMs * share, this.#journal.at(-1)?.reachesMs[slot] ?? 0);
  }

  /** The primary's answer to ROLE: its offset, and those that its replicas have acknowledged. */
  #role(): unknown {
    const { nowMs } = this.#scheduler;
    const replicas = this.#replicas.flatMap(({ address, joinsMs }, slot) => {
      if (joinsMs > nowMs) return [];
      const held = this.#journal.filter(({ reachesMs }) => (reachesMs[slot] ?? 0) <= nowMs);
      return [[...address.split(":"), `${held.length}`]];
    });
    return ["master", this.#journal.length, replicas];
  }

  /** Waits until so many replicas hold what was written. @returns how many do */
  async #wait(count: number, ms: number): Promise<number> {
    const { nowMs } = this.#scheduler;
    this.waitedMs = nowMs;
    const reachesMs = [...(this.#journal.at(-1)?.reachesMs ?? [])];
    const endsMs = reachesMs.toSorted((a, b) => a - b)[count - 1] ?? Infinity;
    const waitMs = Math.min(Math.max(endsMs - nowMs, 0), ms);
    if (waitMs > 0) await this.#scheduler.wait(waitMs);
    return reachesMs.filter((at) => at <= this.#scheduler.nowMs).length;
  }

  get #nowUs(): number {
    return Math.floor((epochMs + this.#scheduler.nowMs + this.#aheadMs) * 1_000);
  }

  /** Answers commands that need no data; undefined for all others. */
  #own({ name, args }: Command, from: Subscriber | undefined): Answer | undefined {
    if (name === "wait" || name === "role") return [null, 0];
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

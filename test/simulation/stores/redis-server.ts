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

export type SimulatedServer = ReturnType<typeof createSimulatedServer>;

/**
 * A simulated Redis: a real server runs its commands at the time of the history, and a journal
 * stands for replicas that lag behind. If there are several, Sentinels promote any one of them.
 */
export function createSimulatedServer(scheduler: Scheduler, replication: Replication | undefined) {
  const { replicas: count = 1, lagMs = 0 } = replication ?? { replicas: 0 };
  /** All commands since the beginning, and when they reach each replica. */
  let journal: {
    readonly atUs: number;
    readonly commands: Command[];
    readonly reachesMs: number[];
  }[] = [];
  const replicas = Array.from(
    { length: count },
    (_, at): Replica => ({
      ...{ address: `redis:${at + 2}`, heldUntilMs: 0, joinsMs: 0 },
    }),
  );
  let address: ServerAddress = "redis:1";
  let epoch = 0;
  /** What each Sentinel knows of the primary. */
  const views = Array.from({ length: sentinelCount }, () => ({ primary: address, epoch: 0 }));
  /** The texts of the scripts that the server has, by digest. */
  const scripts = new Map<string, string>();
  const subscribers = new Map<string, Set<Subscriber>>();
  const connections = new Set<() => void>();
  let clockAheadMs = 0;
  const nowUs = () => Math.floor((epochMs + scheduler.nowMs + clockAheadMs) * 1_000);

  /** What a Sentinel tells. */
  function view(sentinel: number): SentinelView {
    const { primary = "", epoch = 0 } = views[sentinel] ?? {};
    const all = [address, ...replicas.map(({ address }) => address)];
    return {
      ...{ primary, epoch, sentinels: sentinelCount, failingOver: false },
      replicas: all
        .filter((address) => address !== primary)
        .map((address) => ({ address, down: false, priority: 100, offset: 0 })),
    };
  }

  /** Runs the commands that one connection sends in one piece. */
  async function obey(commands: readonly Command[], from?: Subscriber): Promise<Answer[]> {
    const known = commands.map((command) => own(command, from) ?? byText(command));
    const asked = known.filter((one) => "name" in one);
    const answered = asked.length === 0 ? [] : await runAll(asked);
    const answers: Answer[] = [];
    for (const [at, { name, args }] of commands.entries()) {
      const one = known[at]!;
      if (name === "role") answers.push([null, role()]);
      else if (name === "wait") answers.push([null, await wait(Number(args[0]), Number(args[1]))]);
      else answers.push("name" in one ? answered.shift()! : one);
    }
    return answers;
  }

  /** Runs commands on the real server, and delivers what they publish. */
  async function runAll(commands: Command[]): Promise<Answer[]> {
    const atUs = nowUs();
    if (replication) {
      const reachesMs = replicas.map((_, slot) => arrivalMs(slot));
      journal.push({ atUs, commands, reachesMs });
    }
    const { answers, published } = await scheduler.outside(run(atUs, commands));
    for (const [channel, message] of published) {
      for (const each of subscribers.get(channel) ?? []) each.hear(channel, message);
    }
    return answers;
  }

  /** A replica takes over, with its clock `aheadMs` ahead: what had not reached it is lost. */
  async function failOver(aheadMs: number): Promise<void> {
    const { nowMs, random } = scheduler;
    const slot = replicas.length > 1 ? random.whole(0, replicas.length - 1) : 0;
    journal = journal.filter(({ reachesMs }) => (reachesMs[slot] ?? 0) <= nowMs);
    const promoted = replicas[slot];
    if (promoted) {
      // The old primary wrote all that the new one has. It comes back as a replica some time later.
      [promoted.address, address] = [address, promoted.address];
      if (replicas.length > 1) {
        promoted.joinsMs = nowMs + lagMs + random.between(0, 1_000);
        for (const { reachesMs } of journal) reachesMs[slot] = nowMs;
      }
    }
    tellSentinels();
    scripts.clear();
    subscribers.clear();
    clockAheadMs = aheadMs;
    await scheduler.outside(refill(journal.map(({ atUs, commands }) => [atUs, commands])));
    for (const hear of [...connections]) hear();
  }

  /** The one that led the failover knows of it at once. */
  function tellSentinels(): void {
    const { random } = scheduler;
    const news = { primary: address, epoch: ++epoch };
    if (replicas.length < 2) return;
    for (const sentinel of views.keys()) {
      const inMs = sentinel === 0 ? 0 : random.between(0, 500);
      scheduler.after(inMs, () => {
        if ((views[sentinel]?.epoch ?? 0) < news.epoch) views[sentinel] = news;
      });
    }
  }

  /** Moves the watermark of a log, up to which events are shown, to its end. */
  async function showAll(log: string): Promise<void> {
    const [[, tail]] = (await obey([{ name: "hget", args: [log, "tail"] }])) as [Answer];
    if (tail) await obey([{ name: "hset", args: [log, "mark", String(tail)] }]);
  }

  function holdReplica(forMs: number): void {
    const { nowMs, random } = scheduler;
    const replica = replicas.length > 1 ? random.pick(replicas) : replicas[0];
    if (replica) replica.heldUntilMs = Math.max(replica.heldUntilMs, nowMs + forMs);
  }

  /** When a command that runs now reaches a replica; commands keep their order. */
  function arrivalMs(slot: number): number {
    const { nowMs, random } = scheduler;
    const { heldUntilMs = 0, joinsMs = 0 } = replicas[slot] ?? {};
    const leavesMs = Math.max(nowMs, heldUntilMs, joinsMs);
    const share = slot === 0 ? 1 : random.between(0.3, 1);
    return Math.max(leavesMs + lagMs * share, journal.at(-1)?.reachesMs[slot] ?? 0);
  }

  /** The primary's answer to ROLE: its offset, and those that its replicas have acknowledged. */
  function role(): unknown {
    const { nowMs } = scheduler;
    const inSync = replicas.flatMap(({ address, joinsMs }, slot) => {
      if (joinsMs > nowMs) return [];
      const held = journal.filter(({ reachesMs }) => (reachesMs[slot] ?? 0) <= nowMs);
      return [[...address.split(":"), `${held.length}`]];
    });
    return ["master", journal.length, inSync];
  }

  /** Waits until so many replicas hold what was written. @returns how many do */
  async function wait(count: number, ms: number): Promise<number> {
    const { nowMs } = scheduler;
    server.waitedMs = nowMs;
    const reachesMs = [...(journal.at(-1)?.reachesMs ?? [])];
    const endsMs = reachesMs.toSorted((a, b) => a - b)[count - 1] ?? Infinity;
    const waitMs = Math.min(Math.max(endsMs - nowMs, 0), ms);
    if (waitMs > 0) await scheduler.wait(waitMs);
    return reachesMs.filter((at) => at <= scheduler.nowMs).length;
  }

  /** Answers commands that need no data; undefined for all others. */
  function own({ name, args }: Command, from: Subscriber | undefined): Answer | undefined {
    if (name === "wait" || name === "role") return [null, 0];
    if (name !== "subscribe" && name !== "unsubscribe") return undefined;
    for (const channel of args.map(String)) {
      const all = subscribers.get(channel) ?? new Set();
      subscribers.set(channel, all);
      if (from && name === "subscribe") all.add(from);
      else if (from) all.delete(from);
    }
    return [null, args.length];
  }

  /** Replaces the digest of a script by its text; NOSCRIPT if the server does not know it. */
  function byText(command: Command): Command | Answer {
    const [script, ...rest] = command.args;
    if (command.name === "eval") scripts.set(shaOf(String(script)), String(script));
    if (command.name !== "evalsha") return command;
    const lua = scripts.get(String(script));
    if (lua !== undefined) return { ...command, name: "eval", args: [lua, ...rest] };
    const unknown = new Error("NOSCRIPT No matching script. Please use EVAL.");
    return [Object.assign(unknown, { name: "ReplyError" }), null];
  }

  const server = {
    get address() {
      return address;
    },
    /** When a writer last waited for replicas. */
    waitedMs: -Infinity,
    /**
     * Calls `hear` when a failover closes all connections. @returns a function that removes `hear`
     */
    onGone(hear: () => void) {
      connections.add(hear);
      return () => connections.delete(hear);
    },
    unsubscribe(from: Subscriber) {
      for (const all of subscribers.values()) all.delete(from);
    },
    ...{ view, obey, failOver, showAll, holdReplica },
  };
  return server;
}

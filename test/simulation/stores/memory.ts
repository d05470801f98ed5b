import { GatewayError } from "../../../src/errors.ts";
import type { EventLog } from "../../../src/events/log.ts";
import { MemoryAccount } from "../../../src/events/memory/account.ts";
import { type Page, readOn, type StoredLog } from "../../../src/events/tail.ts";
import type { Event } from "../../../src/gen/payments/v1/event_pb.ts";
import {
  endingWrite,
  type Found,
  type OnLateEnding,
  publishLateEndings,
} from "../../../src/intents/late-ending.ts";
import { MemoryIntents } from "../../../src/intents/memory/store.ts";
import { Outbox } from "../../../src/intents/outbox.ts";
import { startedIntent } from "../../../src/intents/redis/writes.ts";
import type { Begun, Ending, Intent, IntentStore, NewIntent } from "../../../src/intents/store.ts";
import type { Permit, TokenBucket } from "../../../src/ratelimit/bucket.ts";
import { createLocalBucket } from "../../../src/ratelimit/local/bucket.ts";
import { type Account, accounts } from "../merchant.ts";
import type { StoreNetwork } from "../network.ts";
import { asNobody, currentProcess, type Process, type Scheduler } from "../scheduler.ts";
import type { ReplicaStores, StoreOptions, Stores } from "./stores.ts";

/**
 * The in-memory stores as a server that all replicas share: its data outlives them, and they reach
 * it over the simulated network.
 */
export function createMemoryStores(options: StoreOptions): Stores {
  const now = () => options.scheduler.epochMs;
  const { firstLookMs, giveUpMs, network, scheduler } = options;
  const logs = new Map<string, MemoryAccount>(
    accounts.map((account) => [
      account,
      new MemoryAccount({ retentionMs: 7 * 86_400_000, maxEvents: 100_000, now }),
    ]),
  );
  const intents = new IntentServer(new MemoryIntents({ firstLookMs, giveUpMs, now }));
  const bucketOf = localBuckets(options);
  return {
    async open(process): Promise<ReplicaStores> {
      const logOfReplica = remoteLog(logs, network, scheduler, process);
      return {
        log: logOfReplica,
        intents: new RemoteIntents(intents, network, publishLateEndings(logOfReplica)),
        bucketOf,
      };
    },
    async isQuiet() {
      const open = await Promise.all(accounts.map((each) => intents.memory.unsettled(each, 1_000)));
      const all = open.flatMap((each) => each.intents);
      return all.every(({ needsOperator }) => needsOperator) && intents.running === 0;
    },
    async log(account): Promise<Event[]> {
      return [
        ...((await logs.get(account)?.page({ kinds: [] }, undefined, 100_000))?.events ?? []),
      ];
    },
    async close() {},
  };
}

/** Each account's budget, which outlives the gateways that share it. */
export function localBuckets({ perSecond, maxWaitMs }: StoreOptions): ReplicaStores["bucketOf"] {
  const buckets = new Map<Account, TokenBucket>();
  return (account) => {
    const bucket =
      buckets.get(account) ??
      asNobody(() => createLocalBucket({ initialLimit: perSecond, reserve: 0.2, maxWaitMs }));
    buckets.set(account, bucket);
    return remoteBucket(bucket);
  };
}

/** One budget for all replicas, whose timers belong to no process. */
function remoteBucket(bucket: TokenBucket): TokenBucket {
  return {
    take: (options) => {
      const process = currentProcess() as Process;
      return new Promise((resolve, reject) => {
        asNobody(() => bucket.take(options)).then(
          (permit) => process.run(() => resolve(remotePermit(permit))),
          (error) => process.run(() => reject(error)),
        );
      });
    },
    status: () => bucket.status(),
    async close() {},
  };
}

function remotePermit(permit: Permit): Permit {
  return {
    observe: (answer) => asNobody(() => permit.observe(answer)),
    rejected: (answer) => asNobody(() => permit.rejected(answer)),
    release: () => asNobody(() => permit.release()),
  };
}

/** The intents on the server, where a `begin` may arrive twice or late. */
class IntentServer {
  readonly memory: MemoryIntents;
  readonly #ended = new Set<string>();
  readonly #running = new Set<string>();

  constructor(memory: MemoryIntents) {
    this.memory = memory;
  }

  get running(): number {
    return this.#running.size;
  }

  async begin(account: string, given: NewIntent): Promise<Begun> {
    if (this.#ended.has(given.id)) throw new GatewayError("UNAVAILABLE", "the call is over");
    const known = this.memory.intentOf(account, given.id);
    if (known) return { kind: "started", intent: known.intent };
    const begun = await this.memory.begin(account, given);
    if (begun.kind === "started") this.#running.add(given.id);
    return begun;
  }

  async end(account: string, intent: Intent, ending: Ending, isPublished: boolean): Promise<Found> {
    this.#running.delete(intent.id);
    const was = this.memory.intentOf(account, intent.id)?.intent.state;
    const isOwn = ending.state !== "unknown" && ending.key !== "keep";
    if (was === "unknown" && isOwn && !isPublished) return "late";
    if (ending.state === "closed") this.#ended.add(intent.id);
    await this.memory.end(account, intent, ending);
    return was && "inTime";
  }
}

/** The intents as a replica uses them: a write that fails is repeated later. */
class RemoteIntents implements IntentStore {
  readonly #server: IntentServer;
  readonly #network: StoreNetwork;
  readonly #onLateEnding: OnLateEnding;
  readonly #outbox = new Outbox(() => {});

  constructor(server: IntentServer, network: StoreNetwork, onLateEnding: OnLateEnding) {
    this.#server = server;
    this.#network = network;
    this.#onLateEnding = onLateEnding;
  }

  async begin(account: string, given: NewIntent): Promise<Begun> {
    try {
      return await this.#ask(`begin ${given.externalId}`, () => this.#server.begin(account, given));
    } catch (error) {
      // The server may have recorded the intent all the same, or may do so yet.
      const intent = startedIntent(given, 0, []);
      const free: Ending = { state: "closed", key: "free" };
      this.#outbox.add(this.#endingWrite(account, intent, free), error);
      throw error;
    }
  }

  async end(account: string, intent: Intent, ending: Ending): Promise<void> {
    await this.#outbox.write(this.#endingWrite(account, intent, ending));
  }

  #endingWrite(account: string, intent: Intent, ending: Ending): () => Promise<void> {
    return endingWrite(
      (isPublished) =>
        this.#ask(`end ${intent.externalId} ${ending.state}`, () =>
          this.#server.end(account, intent, ending, isPublished),
        ),
      () => this.#onLateEnding(account, intent, ending),
    );
  }

  readonly open: IntentStore["open"] = (...args) =>
    this.#ask("open calls", () => this.#memory.open(...args));
  readonly track: IntentStore["track"] = (...args) =>
    this.#ask("track", () => this.#memory.track(...args));
  readonly due: IntentStore["due"] = (...args) => this.#ask("due", () => this.#memory.due(...args));
  readonly postpone: IntentStore["postpone"] = (...args) =>
    this.#ask("postpone", () => this.#memory.postpone(...args));
  readonly scheduleNow: IntentStore["scheduleNow"] = (...args) =>
    this.#ask("schedule now", () => this.#memory.scheduleNow(...args));
  readonly giveUp: IntentStore["giveUp"] = (...args) =>
    this.#ask("give up", () => this.#memory.giveUp(...args));
  readonly stats: IntentStore["stats"] = (...args) =>
    this.#ask("stats", () => this.#memory.stats(...args));
  readonly unsettled: IntentStore["unsettled"] = (...args) =>
    this.#ask("unsettled", () => this.#memory.unsettled(...args));
  readonly lease: IntentStore["lease"] = (...args) =>
    this.#ask("lease", () => this.#memory.lease(...args));

  nowMs(): number {
    return this.#memory.nowMs();
  }

  async close(): Promise<void> {
    await this.#outbox.close();
  }

  get #memory(): MemoryIntents {
    return this.#server.memory;
  }

  #ask<T>(what: string, work: () => Promise<T>): Promise<T> {
    return this.#network.ask(what, work);
  }
}

/**
 * The log as a replica uses it: requests go over the simulated network, live events over a
 * connection that may break.
 */
function remoteLog(
  logs: ReadonlyMap<string, MemoryAccount>,
  network: StoreNetwork,
  scheduler: Scheduler,
  process: Process,
): EventLog {
  const ask = <T>(what: string, work: () => T | Promise<T>) => network.ask(what, work);
  const logOf = (account: string) => {
    const log = logs.get(account);
    if (!log) throw new Error(`no log of ${account}`);
    return log;
  };
  const storedOf = (log: MemoryAccount): StoredLog => ({
    follow: (topic, follower) =>
      ask("follow", async () => {
        // Events arrive in the order in which they were stored, whatever the latency of each.
        let lastMs = 0;
        const detach = await log.follow(topic, {
          event(published) {
            // As it is now: what is done to it later does not reach readers.
            const event = { ...published };
            lastMs = Math.max(lastMs, scheduler.nowMs + network.latencyMs());
            scheduler.after(lastMs - scheduler.nowMs, () => follower.event(event), process);
          },
          fail: (error) => follower.fail(error),
        });
        const leave = () => {
          detach();
          stopCuts();
          stopDeath();
        };
        const stopCuts = network.onCut(() => {
          leave();
          process.run(() => follower.fail(cut()));
        });
        const stopDeath = process.onDeath(leave);
        return leave;
      }),
    bounds: () => ask("bounds", () => log.bounds()),
    page: (topic, after, limit): Promise<Page> => ask("page", () => log.page(topic, after, limit)),
  });
  return {
    durable: true,
    append: (account, entry) =>
      ask(`append ${entry.externalId} ${entry.status}`, () => logOf(account).append(entry)),
    noteHold: (account, externalId, call, isHolding) =>
      ask(`note hold ${externalId}`, () => logOf(account).noteHold(externalId, call, isHolding)),
    snapshot: (account, kind, externalId) =>
      ask("snapshot", () => logOf(account).snapshot(kind, externalId)),
    read: (account, topic, after, options) =>
      readOn(storedOf(logOf(account)), topic, after, options),
    history: (account, kind, externalId, limit, before) =>
      ask("history", () => logOf(account).history(kind, externalId, limit, before)),
    cursorBefore: (account, count) => ask("place", () => logOf(account).cursorBefore(count)),
    async addDeadLetter() {},
    async *deadLetters() {},
    async deadLetter() {
      return undefined;
    },
    async countDeadLetters() {
      return 0;
    },
    async removeDeadLetter() {
      return false;
    },
    unfinished: (account, forMs, limit) =>
      ask("unfinished", () => logOf(account).unfinished(forMs, limit)),
    // Like the production stores, send no request for an empty list.
    async dismiss(account, unfinished) {
      if (unfinished.length > 0) await ask("dismiss", () => logOf(account).dismiss(unfinished));
    },
    async close() {},
  };
}

function cut(): GatewayError {
  return new GatewayError("UNAVAILABLE", "the connection to the store was cut");
}
